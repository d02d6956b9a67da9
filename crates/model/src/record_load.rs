//! Other load while the runs of two records were measured: which may be all that differs between them.

use crate::count;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display};

/// The largest share of disturbed runs of a record that counts as undisturbed.
const MAX_DISTURBED: f64 = 0.1;

/// How many of a record's valid runs other load or a CPU quota disturbed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherLoad {
    pub disturbed: usize,
    pub runs: usize,
}

impl OtherLoad {
    /// Whether it disturbed more than a tenth of the runs.
    pub fn is_heavy(self) -> bool {
        self.disturbed as f64 > MAX_DISTURBED * self.runs as f64
    }
}

impl Display for OtherLoad {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let OtherLoad { disturbed, runs } = self;
        write!(f, "other load disturbed {disturbed} of {}", count(*runs, "run"))
    }
}

/// Other load of both records of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordLoads {
    pub a: OtherLoad,
    pub b: OtherLoad,
}

impl RecordLoads {
    /// Why a difference may be that of the load, and what to do: if it disturbed more than a tenth of the runs of one
    /// record only.
    pub fn warning(&self) -> Option<String> {
        let RecordLoads { a, b } = self;
        if a.is_heavy() == b.is_heavy() {
            return None;
        }
        let [(heavy, name), (light, other)] =
            if a.is_heavy() { [(a, "A"), (b, "B")] } else { [(b, "B"), (a, "A")] };
        Some(format!(
            "{heavy} of {name}, and {} of {} of {other}: a difference may be the load's, so no figure fails for being \
             worse. Measure both builds in one campaign, whose blocks have both: `programs` in a study (docs/generators.md)",
            light.disturbed, light.runs
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(a: usize, b: usize) -> Option<String> {
        let of = |disturbed| OtherLoad { disturbed, runs: 40 };
        RecordLoads { a: of(a), b: of(b) }.warning()
    }

    #[test]
    fn load_of_one_record_is_warned_of() {
        // A tenth of 40 runs is not a heavy load.
        assert_eq!([warning(0, 0), warning(4, 0), warning(5, 40)], [None, None, None]);
        let of_b = warning(4, 30).unwrap();
        assert!(of_b.starts_with("other load disturbed 30 of 40 runs of B, and 4 of 40 of A: "), "{of_b}");
        assert!(of_b.contains("one campaign") && of_b.contains("`programs`"), "{of_b}");
        assert!(warning(5, 4).unwrap().contains("runs of A, and 4 of 40 of B"));
    }
}
