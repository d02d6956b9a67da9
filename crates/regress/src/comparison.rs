//! Candidate against baseline: which families changed, and the conditions that make a candidate bad.

use crate::NOTICEABLE;
use crate::change::{CellChange, Quantity, compare_cells};
use crate::counter::CountedKernel;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Which families changed by more than [`NOTICEABLE`] in a steady cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangedFamilies {
    /// IPv6 changed.
    Ipv6Only,
    /// IPv4 changed.
    Ipv4Only,
    /// Both changed.
    Both,
    /// Neither changed.
    Neither,
}

impl ChangedFamilies {
    /// As a phrase.
    pub fn name(self) -> &'static str {
        match self {
            ChangedFamilies::Ipv6Only => "IPv6 only",
            ChangedFamilies::Ipv4Only => "IPv4 only",
            ChangedFamilies::Both => "both families",
            ChangedFamilies::Neither => "neither family",
        }
    }
}

/// Two kernels compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelComparison {
    pub(crate) baseline: Side,
    pub(crate) candidate: Side,
    /// Which families changed.
    pub outcome: ChangedFamilies,
    /// Whether a condition is met.
    pub is_bad: bool,
    /// The conditions, on each cell.
    pub(crate) checks: Vec<Check>,
    pub(crate) cells: Vec<CellChange>,
}

/// A compared kernel: as the user named it, and its release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Side {
    pub name: String,
    pub release: String,
}

impl From<&CountedKernel> for Side {
    fn from(counted: &CountedKernel) -> Self {
        Side { name: counted.name.clone(), release: counted.counts.kernel.clone() }
    }
}

impl KernelComparison {
    /// Compares counts of the same cells.
    pub fn new(baseline: &CountedKernel, candidate: &CountedKernel, conditions: &[Condition]) -> Self {
        let cells = compare_cells(&baseline.counts, &candidate.counts);
        let mut checks = Vec::new();
        for cell in &cells {
            checks.extend(conditions.iter().filter_map(|condition| condition.check(cell)));
        }
        let ipv4_changes = has_change(&cells, Quantity::Ipv4);
        let ipv6_changes = has_change(&cells, Quantity::Ipv6);
        let outcome = match (ipv4_changes, ipv6_changes) {
            (false, true) => ChangedFamilies::Ipv6Only,
            (true, false) => ChangedFamilies::Ipv4Only,
            (true, true) => ChangedFamilies::Both,
            (false, false) => ChangedFamilies::Neither,
        };
        let is_bad = checks.iter().any(|check| check.is_bad);
        KernelComparison {
            baseline: baseline.into(),
            candidate: candidate.into(),
            outcome,
            is_bad,
            checks,
            cells,
        }
    }

    /// The steady cell in which a quantity grew most, with the change.
    pub(crate) fn largest(&self, quantity: Quantity) -> Option<(&CellChange, f64)> {
        let steady = self.cells.iter().filter(|cell| cell.is_steady());
        let changes = steady.map(|cell| (cell, cell.change(quantity)));
        changes.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// The largest change of any cell and family, in either direction, instructions per message.
    pub fn largest_change(&self) -> f64 {
        let mut largest = 0.0_f64;
        for cell in &self.cells {
            largest = largest.max(cell.change(Quantity::Ipv4).abs()).max(cell.change(Quantity::Ipv6).abs());
        }
        largest
    }
}

/// Whether a quantity changes by more than [`NOTICEABLE`] in a steady cell.
fn has_change(cells: &[CellChange], quantity: Quantity) -> bool {
    cells.iter().any(|cell| cell.is_steady() && cell.change(quantity).abs() > NOTICEABLE)
}

/// A limit for a change, such as `ipv6 > 0.5 %` or `udp/128 gap > 8`: instructions per message, or per cent.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The only cell, or transport, that it looks at; without one, all steady cells.
    cell: Option<String>,
    quantity: Quantity,
    limit: f64,
    is_percent: bool,
}

/// A condition on a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Check {
    pub cell: String,
    pub condition: String,
    /// In the condition's unit.
    pub change: f64,
    /// Whether the condition is met.
    pub is_bad: bool,
}

const QUANTITIES: [(&str, Quantity); 3] =
    [("ipv4", Quantity::Ipv4), ("ipv6", Quantity::Ipv6), ("gap", Quantity::Gap)];

impl Condition {
    /// More than this many instructions per message in any cell.
    pub(crate) fn above(cell: Option<&str>, quantity: Quantity, limit: f64) -> Self {
        Condition { cell: cell.map(str::to_owned), quantity, limit, is_percent: false }
    }

    /// The conditions without others: a family takes more instructions.
    pub fn usual() -> Vec<Self> {
        [Quantity::Ipv4, Quantity::Ipv6].map(|quantity| Self::above(None, quantity, crate::NOTICEABLE)).into()
    }

    /// `None` for a cell that it does not look at.
    pub(crate) fn check(&self, cell: &CellChange) -> Option<Check> {
        let name = &cell.name;
        let is_looked_at = match &self.cell {
            None => cell.is_steady(),
            Some(asked) => asked == name || name.split('/').next() == Some(asked),
        };
        if !is_looked_at {
            return None;
        }
        let change = match self.is_percent {
            true => cell.percent(self.quantity),
            false => cell.change(self.quantity),
        };
        Some(Check { cell: name.clone(), condition: self.to_string(), change, is_bad: change > self.limit })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Condition { cell, quantity, limit, is_percent } = self;
        let cell = cell.as_ref().map(|cell| format!("{cell} ")).unwrap_or_default();
        write!(
            f,
            "{cell}{} > {limit}{}",
            QUANTITIES[*quantity as usize].0,
            if *is_percent { " %" } else { "" }
        )
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = words(text);
        let mut next = words.iter().peekable();
        let wrong =
            |at: usize, expected: &str| Err(format!("expected {expected}\n  {text}\n  {}^", " ".repeat(at)));
        let end = text.chars().count();
        let cell = match next.peek() {
            Some((_, word)) if is_cell(word) => next.next().map(|(_, word)| word.clone()),
            _ => None,
        };
        let quantity = match next.next() {
            Some((at, word)) => match QUANTITIES.iter().find(|(name, _)| name == word) {
                Some((_, quantity)) => *quantity,
                None if cell.is_none() => {
                    return wrong(*at, "ipv4, ipv6 or gap, or a cell before it, such as udp/128");
                }
                None => return wrong(*at, "ipv4, ipv6 or gap"),
            },
            None => return wrong(end, "ipv4, ipv6 or gap"),
        };
        match next.next() {
            Some((_, word)) if word == ">" => {}
            other => return wrong(other.map_or(end, |(at, _)| *at), ">"),
        }
        let (limit, at) = match next.next() {
            Some((at, word)) => (word.parse::<f64>().ok().filter(|limit| limit.is_finite()), *at),
            None => (None, end),
        };
        let Some(limit) = limit else { return wrong(at, "a number") };
        let is_percent = match next.next() {
            None => false,
            Some((_, word)) if word == "%" => true,
            Some((at, _)) => return wrong(*at, "% or the end"),
        };
        match next.next() {
            Some((at, _)) => wrong(*at, "the end"),
            None => Ok(Condition { cell, quantity, limit, is_percent }),
        }
    }
}

fn is_cell(word: &str) -> bool {
    matches!(word.split('/').next(), Some("udp" | "tcp" | "connect"))
}

/// The words with their columns. `>` and `%` are words without spaces around them, too.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, letter) in text.chars().enumerate() {
        let is_alone = matches!(letter, '>' | '%');
        match words.last_mut() {
            _ if letter.is_whitespace() => {}
            Some((_, word)) if is_open && !is_alone => word.push(letter),
            _ => words.push((at, letter.to_string())),
        }
        is_open = !letter.is_whitespace() && !is_alone;
    }
    words
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use stacklab_model::{
        ExactArm, ExactCell, ExactCounts, ExactPath, ExactProbe, ExactRow, Family, Rules, SocketKind,
        Tracking,
    };

    /// A kernel whose UDP and TCP cells have a function of each family with such counts, for 10 messages.
    pub(crate) fn make_counts(name: &str, udp: [u64; 2], tcp: [u64; 2]) -> CountedKernel {
        let cells = vec![make_cell(ExactProbe::Udp, udp), make_cell(ExactProbe::Tcp, tcp)];
        let counts = ExactCounts { qemu: "7.2".to_owned(), kernel: "6.1".to_owned(), cells };
        CountedKernel { name: name.to_owned(), counts }
    }

    fn make_cell(probe: ExactProbe, total: [u64; 2]) -> ExactCell {
        ExactCell {
            probe,
            arms: [Family::Ipv4, Family::Ipv6].map(make_arm),
            messages: 10,
            total,
            rounds: Vec::new(),
            stages: Vec::new(),
            functions: vec![
                make_row("memset", [100, 100]),
                make_row("ip_output / ip6_output", total.map(|count| count - 100)),
            ],
        }
    }

    fn make_arm(family: Family) -> ExactArm {
        ExactArm {
            family,
            path: ExactPath::Loopback,
            size: 128,
            rules: 0,
            routes: 0,
            conntrack: Tracking::Off,
            firewall: Rules::default(),
            socket: SocketKind::Native,
        }
    }

    fn make_row(name: &str, instructions: [u64; 2]) -> ExactRow {
        ExactRow { name: name.to_owned(), stage: None, instructions }
    }

    fn compare_with_baseline(udp: [u64; 2], tcp: [u64; 2]) -> KernelComparison {
        let baseline = make_counts("a", [1000, 2000], [3000, 4000]);
        KernelComparison::new(&baseline, &make_counts("b", udp, tcp), &Condition::usual())
    }

    #[test]
    fn outcome_names_the_families_that_changed() {
        for (udp, tcp, outcome, is_bad) in [
            ([1000, 2000], [3000, 4000], ChangedFamilies::Neither, false),
            ([1080, 2080], [3000, 4000], ChangedFamilies::Neither, false),
            ([1000, 2081], [3000, 4000], ChangedFamilies::Ipv6Only, true),
            ([1000, 2000], [3100, 4000], ChangedFamilies::Ipv4Only, true),
            ([1100, 2000], [3000, 4100], ChangedFamilies::Both, true),
            ([1000, 1900], [3000, 4000], ChangedFamilies::Ipv6Only, false),
        ] {
            let comparison = compare_with_baseline(udp, tcp);
            assert_eq!((comparison.outcome, comparison.is_bad), (outcome, is_bad), "{udp:?} {tcp:?}");
        }
    }

    #[test]
    fn functions_that_changed_are_listed_with_the_change() {
        let comparison = compare_with_baseline([1000, 2085], [3000, 4000]);
        let [udp, tcp] = &comparison.cells[..] else { panic!("{comparison:?}") };
        assert_eq!(udp.functions.len(), 1);
        assert_eq!(udp.functions[0].name, "ip_output / ip6_output");
        assert_eq!(udp.functions[0].change(), [0.0, 8.5]);
        assert!(tcp.functions.is_empty());
        assert_eq!(
            comparison.largest(Quantity::Gap).map(|(cell, gap)| (cell.name.as_str(), gap)),
            Some(("udp/128", 8.5))
        );
        assert_eq!(comparison.largest_change(), 8.5);
    }

    #[test]
    fn conditions_read_back_as_written() {
        for (text, printed) in [
            ("ipv6>0.5%", "ipv6 > 0.5 %"),
            (" gap > 8", "gap > 8"),
            ("udp/128 ipv4 > -3", "udp/128 ipv4 > -3"),
            ("connect ipv6 >20", "connect ipv6 > 20"),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.to_string(), printed);
            assert_eq!(printed.parse(), Ok(condition));
        }
    }

    #[test]
    fn errors_point_at_their_place() {
        for (text, expected) in [
            ("ipv5 > 1", "expected ipv4, ipv6 or gap, or a cell before it, such as udp/128\n  ipv5 > 1\n  ^"),
            ("udp > 1", "expected ipv4, ipv6 or gap\n  udp > 1\n      ^"),
            ("ipv6 >> 1", "expected a number\n  ipv6 >> 1\n        ^"),
            ("ipv6 = 1", "expected >\n  ipv6 = 1\n       ^"),
            ("ipv6 >", "expected a number\n  ipv6 >\n        ^"),
            ("ipv6 > 1 percent", "expected % or the end\n  ipv6 > 1 percent\n           ^"),
            ("ipv6 > 1 % 2", "expected the end\n  ipv6 > 1 % 2\n             ^"),
            ("ipv6 > inf", "expected a number\n  ipv6 > inf\n         ^"),
            ("", "expected ipv4, ipv6 or gap\n  \n  ^"),
        ] {
            assert_eq!(text.parse::<Condition>().unwrap_err(), expected);
        }
    }

    #[test]
    fn a_limit_itself_is_not_exceeded() {
        let udp = CellChange::new("udp/128", [1000.0, 2000.0], [1000.0, 2010.0]);
        let connect = CellChange::new("connect", [1000.0, 2000.0], [1000.0, 2900.0]);
        for (cell, text, is_bad) in [
            (&udp, "ipv6 > 9.9", Some(true)),
            (&udp, "ipv6 > 10", Some(false)),
            (&udp, "ipv6 > 0.4 %", Some(true)),
            (&udp, "ipv6 > 0.5 %", Some(false)),
            (&udp, "ipv4 > 0", Some(false)),
            (&udp, "gap > 9", Some(true)),
            (&udp, "udp ipv6 > 9", Some(true)),
            (&udp, "udp/1408 ipv6 > 9", None),
            (&connect, "ipv6 > 9", None),
            (&connect, "connect ipv6 > 9", Some(true)),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.check(cell).map(|check| check.is_bad), is_bad, "{text}");
        }
    }
}
