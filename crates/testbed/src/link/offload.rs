//! Switches off segmentation and receive offloads (TSO, GSO, GRO, LRO), so that a packet in the kernel is a packet on
//! the wire.

use crate::kernel::sys::{features, switch_off};
use crate::{Attempt, Fault};

/// Whether a feature, by its kernel name, is a segmentation offload (TCP, UDP, tunnels, generic) or receive
/// coalescing. Checksum offload stays on: a veth pair passes memory, so data cannot be corrupted, and checksums would
/// read every byte twice for no benefit.
fn joins_or_splits(feature: &str) -> bool {
    // "robust" only says that the device accepts GSO packets from a guest.
    feature != "tx-gso-robust"
        && ["segmentation", "-gso", "-gro", "-lro"].iter().any(|part| feature.contains(part))
}

/// Switches off every such feature of an interface in the calling thread's namespace, and verifies it.
pub fn switch_off_all(interface: &str) -> Result<(), Fault> {
    let active = || -> Result<(Vec<(usize, String)>, usize), Fault> {
        let found = features(interface).attempt(format!("read the offloads of {interface}"))?;
        let count = found.len();
        let found = found.into_iter().enumerate().filter(|(_, f)| f.active && joins_or_splits(&f.name));
        Ok((found.map(|(place, feature)| (place, feature.name)).collect(), count))
    };
    let (on, count) = active()?;
    let places: Vec<usize> = on.into_iter().map(|(place, _)| place).collect();
    switch_off(interface, &places, count).attempt(format!("switch off the offloads of {interface}"))?;
    let stay: Vec<String> = active()?.0.into_iter().map(|(_, name)| name).collect();
    if stay.is_empty() {
        return Ok(());
    }
    Err("the kernel keeps them on").attempt(format!("switch off {} of {interface}", stay.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_joins_or_splits_goes_and_checksums_stay() {
        for name in [
            "tx-tcp-segmentation",
            "tx-tcp6-segmentation",
            "tx-tcp-mangleid-segmentation",
            "tx-generic-segmentation",
            "tx-udp-segmentation",
            "tx-gso-list",
            "rx-gro",
            "rx-gro-hw",
            "rx-gro-list",
            "rx-udp-gro-forwarding",
            "rx-lro",
        ] {
            assert!(joins_or_splits(name), "{name}");
        }
        for name in ["rx-checksum", "tx-checksum-ip-generic", "tx-scatter-gather", "tx-gso-robust", "highdma"]
        {
            assert!(!joins_or_splits(name), "{name}");
        }
    }
}
