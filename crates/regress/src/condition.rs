//! Conditions that make a candidate bad.

use crate::comparison::CellChange;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// What a condition looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// The change of IPv4.
    Ipv4,
    /// The change of IPv6.
    Ipv6,
    /// The change of the difference between IPv6 and IPv4.
    Gap,
}

const QUANTITIES: [(&str, Quantity); 3] =
    [("ipv4", Quantity::Ipv4), ("ipv6", Quantity::Ipv6), ("gap", Quantity::Gap)];

impl Quantity {
    pub(crate) fn name(self) -> &'static str {
        QUANTITIES[self as usize].0
    }
}

/// A limit for a change, such as `ipv6 > 0.5 %` or `udp/128 gap > 8`: instructions per message, or per cent.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The only cell, or transport, that it looks at; without one, all steady cells.
    cell: Option<String>,
    pub(crate) quantity: Quantity,
    limit: f64,
    is_percent: bool,
}

/// A condition on a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// The cell.
    pub cell: String,
    /// The condition.
    pub condition: String,
    /// The change, in the condition's unit.
    pub change: f64,
    /// Whether the condition is met.
    pub is_bad: bool,
}

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
        write!(f, "{cell}{} > {limit}{}", quantity.name(), if *is_percent { " %" } else { "" })
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
        let quantity = |word: &str| QUANTITIES.iter().find(|(name, _)| *name == word).map(|(_, one)| *one);
        let cell = match next.peek() {
            Some((_, word)) if is_cell(word) => next.next().map(|(_, word)| word.clone()),
            _ => None,
        };
        let quantity = match next.next() {
            Some((at, word)) => match quantity(word) {
                Some(quantity) => quantity,
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
mod tests {
    use super::*;

    fn cell() -> CellChange {
        CellChange::new("udp/128", [1000.0, 2000.0], [1000.0, 2010.0])
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
        let is_bad = |text: &str| text.parse::<Condition>().unwrap().check(&cell()).map(|check| check.is_bad);
        assert_eq!(is_bad("ipv6 > 9.9"), Some(true));
        assert_eq!(is_bad("ipv6 > 10"), Some(false));
        assert_eq!(is_bad("ipv6 > 0.4 %"), Some(true));
        assert_eq!(is_bad("ipv6 > 0.5 %"), Some(false));
        assert_eq!(is_bad("ipv4 > 0"), Some(false));
        assert_eq!(is_bad("gap > 9"), Some(true));
        assert_eq!(is_bad("udp ipv6 > 9"), Some(true));
        assert_eq!(is_bad("udp/1408 ipv6 > 9"), None);
        let connect = CellChange::new("connect", [1000.0, 2000.0], [1000.0, 2900.0]);
        let check = |text: &str| text.parse::<Condition>().unwrap().check(&connect).map(|check| check.is_bad);
        assert_eq!((check("ipv6 > 9"), check("connect ipv6 > 9")), (None, Some(true)));
    }
}
