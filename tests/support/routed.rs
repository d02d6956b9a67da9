//! Streams between the clients of two routers, and what the header model says of them.
#![allow(dead_code, reason = "each test uses its own part")]

use stacklab_model::{Mechanism, RunRecord, WirePath};

/// What the headers leave of a middle link of a rate, Mbit/s; and bytes of IP on it per message.
pub fn model(run: &RunRecord, rate: f64) -> (f64, f64) {
    let cell = &run.trial.cell;
    let path = WirePath::plain(cell.family, cell.transport, 1500);
    let path = WirePath { mechanism: Mechanism::of(cell), ..path };
    let size = path.wire_size(cell.size).unwrap();
    (rate * f64::from(cell.size) / f64::from(size.wire_bytes), f64::from(size.ip_bytes))
}
