//! Other load while the runs of two records were measured: which may be all that differs between them.

use crate::{Warning, count};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display};

/// The largest share of disturbed runs of a record that counts as undisturbed.
const MAX_DISTURBED: f64 = 0.1;

/// How far apart the mean shares of two records may be that count as measured under the same load: disturbed round
/// trips grow faster than the share does.
const MAX_APART: f64 = 0.2;

/// How many of a record's valid runs other load or a CPU quota disturbed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherLoad {
    pub disturbed: usize,
    pub runs: usize,
    /// The share of the CPUs that other load used, the mean over all valid runs, 0 to 1. A run that was not disturbed
    /// counts as 0.
    #[serde(default)]
    pub share: f64,
}

impl OtherLoad {
    /// Whether it disturbed more than a tenth of the runs.
    pub fn is_heavy(self) -> bool {
        self.disturbed as f64 > MAX_DISTURBED * self.runs as f64
    }

    /// `30 of 40 runs (74 % of the CPUs in the mean)`.
    pub fn describe_extent(self) -> String {
        let OtherLoad { disturbed, runs, share } = self;
        let used = if share > 0.0 {
            format!(" ({:.0} % of the CPUs in the mean)", 100.0 * share)
        } else {
            String::new()
        };
        format!("{disturbed} of {}{used}", count(runs, "run"))
    }
}

impl Display for OtherLoad {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "other load disturbed {}", self.describe_extent())
    }
}

/// The share of the CPUs, per cent, that a warning says other load used: `other load used 74 % of the CPUs (..)`.
pub fn read_other_load(warning: &Warning) -> Option<u32> {
    let (share, _) = warning.text.strip_prefix("other load used ")?.split_once(" %")?;
    share.parse().ok()
}

/// Other load of both records of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordLoads {
    pub a: OtherLoad,
    pub b: OtherLoad,
}

impl RecordLoads {
    /// Why a difference may be that of the load, and what to do: if it disturbed more than a tenth of the runs of one
    /// record only, or used much more of the CPUs during one of them.
    pub fn warning(&self) -> Option<String> {
        let RecordLoads { a, b } = self;
        let differs = a.is_heavy() != b.is_heavy() || (a.share - b.share).abs() > MAX_APART;
        let [(heavy, name), (light, other)] =
            if self.is_heavier_a() { [(a, "A"), (b, "B")] } else { [(b, "B"), (a, "A")] };
        differs.then(|| {
            format!(
                "{heavy} in {name} and {} in {other}: a difference may be the load's, so no figure fails for being \
                 worse. Measure both builds in one campaign, whose blocks have both: `programs` in a study \
                 (docs/generators.md)",
                light.describe_extent()
            )
        })
    }

    fn is_heavier_a(&self) -> bool {
        let RecordLoads { a, b } = self;
        if a.is_heavy() == b.is_heavy() { a.share > b.share } else { a.is_heavy() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(a: (usize, f64), b: (usize, f64)) -> Option<String> {
        let [a, b] = [a, b].map(|(disturbed, share)| OtherLoad { disturbed, runs: 40, share });
        RecordLoads { a, b }.warning()
    }

    #[test]
    fn load_of_one_record_is_warned_of() {
        // A tenth of 40 runs is not a heavy load.
        for alike in [[(0, 0.0), (0, 0.0)], [(4, 0.02), (0, 0.0)], [(5, 0.1), (40, 0.29)]] {
            assert_eq!(warning(alike[0], alike[1]), None);
        }
        let of_b = warning((4, 0.0), (30, 0.0)).unwrap();
        assert!(
            of_b.starts_with("other load disturbed 30 of 40 runs in B and 4 of 40 runs in A: "),
            "{of_b}"
        );
        assert!(of_b.contains("one campaign") && of_b.contains("`programs`"), "{of_b}");
        assert!(warning((5, 0.0), (4, 0.0)).unwrap().contains("runs in A and 4 of 40 runs in B"));
    }

    #[test]
    fn heavier_load_of_one_record_is_warned_of() {
        let of_a = warning((40, 0.8), (39, 0.5)).unwrap();
        let wanted = "other load disturbed 40 of 40 runs (80 % of the CPUs in the mean) in A and 39 of 40 runs \
                      (50 % of the CPUs in the mean) in B: ";
        assert!(of_a.starts_with(wanted), "{of_a}");
    }

    #[test]
    fn share_is_read_from_its_warning() {
        let texts = [
            ("other load used 74 % of the CPUs (steal 2 %)", Some(74)),
            ("the CPU quota held it back", None),
            ("other load used much", None),
        ];
        for (text, share) in texts {
            let warning = Warning { code: String::new(), text: text.to_owned(), advice: String::new() };
            assert_eq!(read_other_load(&warning), share, "{text}");
        }
    }
}
