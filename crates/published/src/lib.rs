//! What published studies print, read from the tables in `reference/`: their figures, the differences they state, the
//! directions they find, and the conditions that a testbed of namespaces cannot reproduce.
//! [`replication`] tests those findings on a record of this machine.
//!
//! The tables are part of the program. Every row is checked when it is read; an error names file and line.

mod airtime;
mod audit;
mod finding;
pub mod replication;
mod tables;
mod text;

pub use airtime::airtime;
pub use audit::audit_json;
pub use tables::{Printed, PublishedFigure, ReferenceError};
pub use text::{audit_blocks, list, show};

use finding::Finding;
use stacklab_model::nearest;
use tables::{Claim, Limit};

/// A study with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StudyName {
    /// Its name: first author, year, subject.
    pub name: &'static str,
    /// The subject of its comparison, in a few words.
    pub subject: &'static str,
    /// The number of runs of each of its cells.
    pub runs: Option<u32>,
}

/// The studies, in the order of their names; the order is the same everywhere.
pub const STUDIES: [StudyName; 5] = [
    StudyName {
        name: "soorty2013linux",
        subject: "Red Hat Enterprise Server 5.5 and Ubuntu Server 10.04, TCP over Gigabit Ethernet",
        runs: Some(10),
    },
    StudyName {
        name: "sarkar2013winlin",
        subject: "Windows and Linux, client and server, TCP over Gigabit Ethernet",
        runs: Some(10),
    },
    StudyName {
        name: "ogunleye2016",
        subject: "IPv6 over IPv4 by configured tunnel and 6to4, Windows and Ubuntu",
        runs: None,
    },
    StudyName {
        name: "kolahi2011wlan",
        subject: "Windows XP, Windows 7 and Fedora 12 over 802.11n with WPA2",
        runs: Some(40),
    },
    StudyName {
        name: "kolahi2009lan",
        subject: "Windows Vista pairs and Vista with Windows Server 2008 over Fast Ethernet",
        runs: Some(40),
    },
];

/// The study with a name, or an error with the names that exist.
pub fn study(name: &str) -> Result<&'static StudyName, String> {
    STUDIES.iter().find(|study| study.name == name).ok_or_else(|| {
        let names = STUDIES.each_ref().map(|study| study.name);
        let meant = nearest(name, names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        format!("there is no published study `{name}`: expected one of {}{meant}", names.join(", "))
    })
}

/// All published data, read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Figures.
    pub figures: Vec<PublishedFigure>,
    /// Stated differences.
    claims: Vec<Claim>,
    /// Directional findings.
    findings: Vec<Finding>,
    /// Conditions that presets do not reproduce.
    limits: Vec<Limit>,
}

impl Reference {
    /// Reads the tables that are part of the program.
    pub fn built_in() -> Result<Self, ReferenceError> {
        Ok(Reference {
            figures: tables::figures(include_str!("../reference/published.csv"))?,
            claims: tables::claims(include_str!("../reference/claims.csv"))?,
            findings: finding::findings(include_str!("../reference/findings.csv"))?,
            limits: tables::limits(include_str!("../reference/limits.csv"))?,
        })
    }

    /// The published data of one study; empty if no study has that name.
    pub fn of(&self, study: &str) -> Self {
        let mut own = self.clone();
        own.figures.retain(|row| row.source == study);
        own.claims.retain(|row| row.source == study);
        own.findings.retain(|row| row.source == study);
        own.limits.retain(|row| row.source == study);
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tables::LimitKind;

    #[test]
    fn everything_published_is_read() {
        let all = Reference::built_in().unwrap_or_else(|error| panic!("{error}"));
        let counts = (all.figures.len(), all.claims.len(), all.findings.len());
        assert_eq!(counts, (460, 61, 31));
        let mut by_study = Vec::new();
        for study in &STUDIES {
            let own = all.of(study.name);
            assert!(own.limits.iter().any(|limit| limit.kind == LimitKind::System), "{}", study.name);
            by_study.push((own.figures.len(), own.claims.len(), own.findings.len()));
        }
        assert_eq!(by_study, [(20, 21, 10), (4, 3, 4), (260, 9, 5), (54, 12, 7), (122, 16, 5)]);
    }
}
