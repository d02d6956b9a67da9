//! Differences that studies state.

use crate::Printed;
use crate::rows::{ReferenceError, rows};
use serde::Deserialize;
use stacklab_model::Better;

/// Two figures and their difference as a study states it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Claim {
    /// The study.
    pub source: String,
    /// Table, figure or section.
    pub location: String,
    /// The compared quantity, in words.
    pub metric: String,
    /// Unit of both figures.
    pub unit: String,
    /// Which figure is better.
    pub better: Better,
    /// One arm.
    pub a_label: String,
    /// Its figure.
    pub a: Printed,
    /// The other arm.
    pub b_label: String,
    /// Its figure.
    pub b: Printed,
    /// The stated difference in the figures' unit.
    #[serde(rename = "published_difference")]
    pub difference: Option<Printed>,
    /// The stated difference in per cent, or in what the study calls per cent.
    #[serde(rename = "published_percent")]
    pub percent: Option<Printed>,
}

impl Claim {
    /// The stated difference to audit: the per cent if stated, otherwise the difference in the figures' unit.
    pub fn stated(&self) -> &Printed {
        self.percent
            .as_ref()
            .or(self.difference.as_ref())
            .expect("a claim that was read states one of the two")
    }
}

pub(crate) fn read(text: &str) -> Result<Vec<Claim>, ReferenceError> {
    rows("claims.csv", text, &["published_difference", "published_percent"], |claim: &Claim| {
        match (&claim.difference, &claim.percent) {
            (None, None) => {
                Err("neither `published_difference` nor `published_percent` is stated".to_owned())
            }
            _ => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_without_a_stated_difference_is_refused_with_its_line() {
        let header =
            "source,location,metric,unit,better,a_label,a,b_label,b,published_difference,published_percent";
        let error = read(&format!("{header}\nkolahi2009lan,IV,rtt,ms,lower,a,1.0,b,2.0,,\n")).unwrap_err();
        assert_eq!((error.file, error.line), ("claims.csv", 2));
        let error = read(&format!("{header}\nkolahi2009lan,IV,rtt,ms,less,a,1.0,b,2.0,1,\n")).unwrap_err();
        assert!(error.to_string().starts_with("reference/claims.csv:2: unknown variant `less`"), "{error}");
    }
}
