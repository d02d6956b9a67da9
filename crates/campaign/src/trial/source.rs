//! Where the reports of a run come from.

use stacklab_model::Direction;

/// The host and direction of a host report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReportSource {
    /// The rig's host: 0 is the sender of the testbed, 1 its receiver.
    pub host: usize,
    /// Whether the messages it reports on went from host 0 to host 1.
    pub forward: bool,
}

/// The host and direction of each host report of a run: a stream's sender and receiver, then those of the reverse
/// stream.
pub(crate) fn report_sources(direction: Direction) -> Vec<ReportSource> {
    let mut sources = Vec::new();
    for from in direction.senders() {
        for host in [*from, 1 - *from] {
            sources.push(ReportSource { host, forward: *from == 0 });
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_hosts(direction: Direction) -> Vec<usize> {
        report_sources(direction).iter().map(|source| source.host).collect()
    }

    #[test]
    fn each_report_has_one_host_and_one_direction() {
        assert_eq!(list_hosts(Direction::Forward), [0, 1]);
        assert_eq!(list_hosts(Direction::Reverse), [1, 0]);
        assert_eq!(list_hosts(Direction::Both), [0, 1, 1, 0]);
        assert!(report_sources(Direction::Forward).iter().all(|source| source.forward));
        assert!(!report_sources(Direction::Reverse).iter().any(|source| source.forward));
        let both: Vec<bool> = report_sources(Direction::Both).iter().map(|source| source.forward).collect();
        assert_eq!(both, [true, true, false, false]);
    }
}
