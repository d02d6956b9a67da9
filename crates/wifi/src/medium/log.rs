//! Where the time of a channel went, by exchange.

use stacklab_model::wifi::{AirInterval, Airtime, ChannelUse, NodeAirtime};

/// The most rows. With more, two neighbours become one: memory does not grow with time.
const MAX_ROWS: usize = 16_384;

#[derive(Debug, Clone)]
struct ExchangeRow {
    begin_ns: u64,
    end_ns: u64,
    /// For how long a frame had waited when it began.
    contention_ns: u64,
    airtime: Airtime,
    /// What each node had, and what its queue dropped since the row before.
    nodes: Vec<NodeAirtime>,
}

#[derive(Debug)]
pub(crate) struct AirtimeLog {
    /// When the channel became idle for the first time.
    since_ns: u64,
    rows: Vec<ExchangeRow>,
    /// Exchanges in a row, and in the last one.
    each: usize,
    last: usize,
    /// All that nodes had by the end of the last row.
    nodes: Vec<NodeAirtime>,
}

impl AirtimeLog {
    /// A log that begins when the channel becomes idle. The nodes had so much until then.
    pub(crate) fn new(since_ns: u64, nodes: Vec<NodeAirtime>) -> Self {
        AirtimeLog { since_ns, rows: Vec::new(), each: 1, last: 0, nodes }
    }

    /// Notes an exchange, from its beginning to its end. A frame had waited for it for so long. The nodes have had so
    /// much by its end.
    pub(crate) fn note(
        &mut self,
        [begin_ns, end_ns]: [u64; 2],
        contention_ns: u64,
        airtime: Airtime,
        nodes: &[NodeAirtime],
    ) {
        self.nodes.resize(nodes.len(), NodeAirtime::default());
        let moved = nodes.iter().zip(&self.nodes).map(|(now, before)| *now - *before).collect();
        self.nodes.copy_from_slice(nodes);
        let row = ExchangeRow { begin_ns, end_ns, contention_ns, airtime, nodes: moved };
        match self.rows.last_mut() {
            Some(last) if self.last < self.each => {
                last.join(row);
                self.last += 1;
            }
            _ => {
                if self.rows.len() == MAX_ROWS {
                    self.halve();
                }
                self.rows.push(row);
                self.last = 1;
            }
        }
    }

    fn halve(&mut self) {
        let mut joined: Vec<ExchangeRow> = Vec::with_capacity(MAX_ROWS);
        for (number, row) in self.rows.drain(..).enumerate() {
            match joined.last_mut() {
                Some(last) if number % 2 == 1 => last.join(row),
                _ => joined.push(row),
            }
        }
        self.rows = joined;
        self.each *= 2;
    }

    /// The use of the channel in windows. A frame waits since then, if one does.
    pub(crate) fn find_use(&self, windows: &[[u64; 2]], waits_since_ns: Option<u64>) -> ChannelUse {
        let nodes = vec![NodeAirtime::default(); self.nodes.len()];
        let mut used = ChannelUse { airtime: Airtime::default(), nodes, intervals: Vec::new() };
        for [from_ns, to_ns] in windows {
            self.add(&mut used, (*from_ns).max(self.since_ns), *to_ns, waits_since_ns);
        }
        used
    }

    fn add(&self, used: &mut ChannelUse, from_ns: u64, to_ns: u64, waits_since_ns: Option<u64>) {
        let begun = self.rows.partition_point(|row| row.begin_ns < from_ns);
        let before = begun.checked_sub(1).map_or(from_ns, |last| self.rows[last].end_ns);
        let mut at_ns = from_ns.max(before);
        let of_window: Vec<&ExchangeRow> =
            self.rows[begun..].iter().take_while(|row| row.begin_ns < to_ns).collect();
        if used.intervals.is_empty() {
            let first = of_window.iter().take(ChannelUse::MAX_INTERVALS);
            used.intervals = first.map(|row| row.interval(from_ns)).collect();
        }
        let count = of_window.len();
        for row in of_window {
            used.airtime += gap([at_ns, row.begin_ns], row.begin_ns - row.contention_ns);
            used.airtime += row.airtime;
            for (sum, node) in used.nodes.iter_mut().zip(&row.nodes) {
                *sum += *node;
            }
            at_ns = row.end_ns;
        }
        let next = self.rows.get(begun + count).map(|row| row.begin_ns - row.contention_ns);
        used.airtime += gap([at_ns, to_ns], next.or(waits_since_ns).unwrap_or(to_ns));
    }
}

impl ExchangeRow {
    fn join(&mut self, next: ExchangeRow) {
        self.airtime += gap([self.end_ns, next.begin_ns], next.begin_ns - next.contention_ns);
        self.airtime += next.airtime;
        self.end_ns = next.end_ns;
        for (own, node) in self.nodes.iter_mut().zip(&next.nodes) {
            *own += *node;
        }
    }

    fn interval(&self, from_ns: u64) -> AirInterval {
        AirInterval {
            begin_ns: self.begin_ns - from_ns,
            end_ns: self.end_ns - from_ns,
            nodes_ns: self.nodes.iter().map(NodeAirtime::busy_ns).collect(),
            collision_ns: self.airtime.collision_ns,
        }
    }
}

/// The time between two exchanges: idle until a frame waits.
fn gap([from_ns, to_ns]: [u64; 2], waits_since_ns: u64) -> Airtime {
    let waits = waits_since_ns.clamp(from_ns.min(to_ns), to_ns);
    Airtime {
        idle_ns: waits.saturating_sub(from_ns),
        contention_ns: to_ns.saturating_sub(waits.max(from_ns)),
        ..Airtime::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exchanges of 5 us, each 10 us after the one before, of which a frame waits for the last 2.
    fn log(count: u64) -> AirtimeLog {
        let mut log = AirtimeLog::new(1000, vec![NodeAirtime::default()]);
        let mut nodes = [NodeAirtime::default()];
        for number in 0..count {
            let begin_ns = 6000 + number * 10_000;
            let taken = Airtime { data_ns: 5000, ..Airtime::default() };
            nodes[0].data_ns += 5000;
            nodes[0].transmissions += 1;
            log.note([begin_ns, begin_ns + 5000], 2000, taken, &nodes);
        }
        log
    }

    #[test]
    fn an_exchange_is_in_the_window_in_which_it_begins() {
        let log = log(10);
        // From within the first to within the third: the second and the third in full, and the gaps before them.
        let used = log.find_use(&[[7000, 27_000]], None);
        let expected = Airtime { data_ns: 10_000, idle_ns: 6000, contention_ns: 4000, ..Airtime::default() };
        assert_eq!((used.airtime, used.nodes[0].transmissions), (expected, 2));
        let begins: Vec<_> = used.intervals.iter().map(|interval| interval.begin_ns).collect();
        assert_eq!(begins, [9000, 19_000]);
        assert_eq!(used.intervals[0].nodes_ns, [5000]);
        // Within one exchange there is no time that is not its own.
        assert_eq!(log.find_use(&[[7000, 9000]], None).airtime.elapsed_ns(), 0);
        // A window may end while a frame waits, and behind the last exchange.
        let waits = log.find_use(&[[11_000, 15_000]], None).airtime;
        assert_eq!((waits.idle_ns, waits.contention_ns), (3000, 1000));
        let behind = log.find_use(&[[101_000, 110_000]], Some(107_000)).airtime;
        assert_eq!((behind.idle_ns, behind.contention_ns, behind.busy_ns()), (6000, 3000, 0));
    }

    #[test]
    fn consecutive_windows_account_for_all_time() {
        let log = log(1000);
        let edges: Vec<u64> = (0..=100).map(|number| 1000 + number * number * 1000).collect();
        let windows: Vec<[u64; 2]> = edges.windows(2).map(|pair| [pair[0], pair[1]]).collect();
        let all = log.find_use(&windows, None);
        assert_eq!(all.airtime.elapsed_ns(), 10_001_000 - 1000);
        assert_eq!(all.airtime, log.find_use(&[[0, 10_001_000]], None).airtime);
        assert_eq!((all.nodes[0].transmissions, all.intervals.len()), (1000, 1));
    }

    #[test]
    fn a_long_log_is_joined_and_loses_no_time() {
        let count = 3 * MAX_ROWS as u64 + 7;
        let log = log(count);
        assert!(log.rows.len() <= MAX_ROWS && log.rows.len() > MAX_ROWS / 2, "{}", log.rows.len());
        let end_ns = 1000 + count * 10_000;
        let used = log.find_use(&[[0, end_ns]], None);
        assert_eq!(used.airtime.elapsed_ns(), end_ns - 1000);
        assert_eq!((used.airtime.data_ns, used.airtime.contention_ns), (count * 5000, count * 2000));
        assert_eq!(used.nodes[0].transmissions, count);
        assert_eq!(used.intervals.len(), ChannelUse::MAX_INTERVALS);
        assert_eq!(used.intervals[0].nodes_ns, [4 * 5000]);
    }
}
