//! Streams between the clients of two routers, and what the header model says of them.

use stacklab_model::{Mechanism, RunRecord, WirePath};

/// What the headers leave of a middle link of a rate, Mbit/s, and the bytes of IP of a message on it. A link at an end, which is
/// no faster, leaves less where a translator makes packets smaller.
pub fn model(run: &RunRecord, rate: f64) -> (f64, f64) {
    let cell = &run.trial.cell;
    let plain = WirePath::plain(cell.family, cell.transport, 1500);
    let path = WirePath { mechanism: Mechanism::of(cell), ..plain };
    let [end, middle] = [plain, path].map(|path| path.wire_size(cell.size).unwrap());
    let most = f64::from(end.wire_bytes.max(middle.wire_bytes));
    (rate * f64::from(cell.size) / most, f64::from(middle.ip_bytes))
}
