//! What published studies print, read from the tables in `reference/`: their figures, the differences they state, the
//! directions they find, and the conditions that a testbed of namespaces cannot reproduce.
//! [`replication`] tests those findings on a record of this machine.
//!
//! The tables are part of the program. Every row is checked when it is read; an error names file and line.
//!
//! * [`Reference`]: everything, and each study by its name
//! * [`audit`]: every stated difference recomputed by every formula
//! * [`published_tables`]: a study's figures as it prints them

mod airtime;
mod audit;
mod claim;
mod figure;
mod finding;
mod printed;
pub mod replication;
mod rows;
mod scope;
mod studies;
mod text;

pub use airtime::airtime;
pub use audit::{Audited, Recomputed, audit, audit_json};
pub use claim::Claim;
pub use figure::{PublishedFigure, PublishedTable, published_tables};
pub use finding::{Finding, FindingArm, FindingDirection};
pub use printed::Printed;
pub use rows::ReferenceError;
pub use scope::{Scope, Sizes, Systems};
pub use studies::{Limit, LimitKind, STUDIES, StudyName, study};
pub use text::{audit_blocks, list, show};

/// All published data, read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Figures.
    pub figures: Vec<PublishedFigure>,
    /// Stated differences.
    pub claims: Vec<Claim>,
    /// Directional findings.
    pub findings: Vec<Finding>,
    /// Conditions that presets do not reproduce.
    pub limits: Vec<Limit>,
}

impl Reference {
    /// Reads the tables that are part of the program.
    pub fn built_in() -> Result<Self, ReferenceError> {
        Ok(Reference {
            figures: figure::read(include_str!("../reference/published.csv"))?,
            claims: claim::read(include_str!("../reference/claims.csv"))?,
            findings: finding::read(include_str!("../reference/findings.csv"))?,
            limits: rows::rows("limits.csv", include_str!("../reference/limits.csv"), &[], |_| Ok(()))?,
        })
    }

    /// The published data of one study; empty if no study has that name.
    pub fn of(&self, study: &str) -> Self {
        fn keep<T: Clone>(rows: &[T], source: impl Fn(&T) -> bool) -> Vec<T> {
            rows.iter().filter(|row| source(row)).cloned().collect()
        }
        Reference {
            figures: keep(&self.figures, |row| row.source == study),
            claims: keep(&self.claims, |row| row.source == study),
            findings: keep(&self.findings, |row| row.source == study),
            limits: keep(&self.limits, |row| row.source == study),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_published_is_read() {
        let all = Reference::built_in().unwrap_or_else(|error| panic!("{error}"));
        let counts = (all.figures.len(), all.claims.len(), all.findings.len());
        assert_eq!(counts, (460, 61, 31));
        let of = |study: &StudyName| {
            let own = all.of(study.name);
            assert!(own.limits.iter().any(|limit| limit.kind == LimitKind::System), "{}", study.name);
            (own.figures.len(), own.claims.len(), own.findings.len())
        };
        assert_eq!(
            STUDIES.each_ref().map(of),
            [(20, 21, 10), (4, 3, 4), (260, 9, 5), (54, 12, 7), (122, 16, 5)]
        );
    }
}
