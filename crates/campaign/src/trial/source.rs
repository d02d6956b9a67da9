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
    let of_transfer = |from: &usize| {
        let forward = *from == 0;
        [*from, 1 - *from].map(|host| ReportSource { host, forward })
    };
    direction.senders().iter().flat_map(of_transfer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_report_has_one_host_and_one_direction() {
        let hosts =
            |direction| report_sources(direction).iter().map(|source| source.host).collect::<Vec<_>>();
        assert_eq!(hosts(Direction::Forward), [0, 1]);
        assert_eq!(hosts(Direction::Reverse), [1, 0]);
        assert_eq!(hosts(Direction::Both), [0, 1, 1, 0]);
        assert!(report_sources(Direction::Forward).iter().all(|source| source.forward));
        assert!(!report_sources(Direction::Reverse).iter().any(|source| source.forward));
        let both: Vec<bool> = report_sources(Direction::Both).iter().map(|source| source.forward).collect();
        assert_eq!(both, [true, true, false, false]);
    }
}
