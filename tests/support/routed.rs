//! Streams between the clients of two routers, and their figures by the header model.

use stacklab_model::{Mechanism, RunRecord, WirePath};

/// The payload rate that the headers leave on a middle link of a given rate, Mbit/s, and the IP bytes of a message on
/// it. An end link is no faster, and leaves less if a translator makes packets smaller.
pub(crate) fn model(run: &RunRecord, rate: f64) -> (f64, f64) {
    let cell = &run.trial.cell;
    let plain = WirePath::plain(cell.family, cell.transport, 1500);
    let path = WirePath { mechanism: Mechanism::of(cell), ..plain };
    let [end, middle] = [plain, path].map(|path| path.wire_size(cell.size).unwrap());
    let most = f64::from(end.wire_bytes.max(middle.wire_bytes));
    (rate * f64::from(cell.size) / most, f64::from(middle.ip_bytes))
}
