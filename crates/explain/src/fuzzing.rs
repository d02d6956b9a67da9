//! Parsers of what an emulated machine leaves: untrusted input. Public for the fuzz targets (`fuzz/`) only.

use crate::exact::read_counts;
use stacklab_model::ExactCell;

/// The cell of 128-byte UDP messages from the plugin's counts and the guest's report, or the reason without one.
pub fn exact_cell(counts: &[u8], report: &[u8]) -> Result<ExactCell, String> {
    let plan = "udp:ipv4@loopback/128*0+ipv6@loopback/128*0".parse()?;
    Ok(read_counts(&plan, counts, report)?.1.remove(0))
}
