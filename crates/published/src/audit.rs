//! Stated differences, recomputed.
//!
//! Studies state differences in per cent without naming the base. Each is recomputed by every formula from the two
//! figures printed with it. A formula reproduces a difference if its result, rounded to the printed decimals, equals
//! it. A study may have computed with more digits than it prints. So a formula is consistent with rounding if some
//! figures that are printed like these give a difference that is printed like this one (interval arithmetic).

use crate::Reference;
use crate::tables::Claim;
use serde::Serialize;
use stacklab_model::Difference;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Audited<'a> {
    pub claim: &'a Claim,
    pub recomputed: Recomputed,
    /// The formula that gives the printed difference. If several do, the formula that fits most of the study's
    /// claims.
    pub reproduced_by: Option<Difference>,
    /// Every formula that gives the printed difference.
    pub formulas: Vec<Difference>,
    /// Formulas that give it for figures that round to the printed ones; listed only if no formula gives it for the
    /// printed figures themselves.
    pub within_rounding: Vec<Difference>,
    /// Whether the stated difference in the figures' own unit is consistent with rounding, if the study states it in
    /// addition to the per cent.
    pub difference_agrees: Option<bool>,
}

/// The difference by each formula, to six decimals; `None` if the formula divides by zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Recomputed {
    /// Per cent of the mean of both.
    pub symmetric: Option<f64>,
    /// Per cent of the lower figure.
    pub lower: Option<f64>,
    /// Per cent of the higher figure.
    pub higher: Option<f64>,
    /// In the figures' own unit.
    pub points: Option<f64>,
}

pub(crate) fn audit(claims: &[Claim]) -> Vec<Audited<'_>> {
    let formulas: Vec<Vec<Difference>> = claims.iter().map(|claim| matching(claim, reproduces)).collect();
    let mut audited = Vec::new();
    for (claim, own) in claims.iter().zip(&formulas) {
        // The first of the most frequent formulas, because `max_by_key` takes the last.
        let candidates = own.iter().rev().copied();
        let usual = candidates.max_by_key(|formula| count_uses(*formula, &claim.source, claims, &formulas));
        let within_rounding = if own.is_empty() { matching(claim, is_within_rounding) } else { Vec::new() };
        audited.push(Audited {
            claim,
            recomputed: recompute(claim),
            reproduced_by: usual,
            formulas: own.clone(),
            within_rounding,
            difference_agrees: check_difference(claim),
        });
    }
    audited
}

/// How many claims of a study a formula gives; `formulas` has those of each claim.
fn count_uses(formula: Difference, source: &str, claims: &[Claim], formulas: &[Vec<Difference>]) -> usize {
    let own = claims.iter().zip(formulas).filter(|(claim, _)| claim.source == source);
    own.filter(|(_, formulas)| formulas.contains(&formula)).count()
}

/// Whether the difference in the figures' unit is consistent with rounding; `None` unless it is stated beside the per
/// cent.
fn check_difference(claim: &Claim) -> Option<bool> {
    claim.percent.as_ref()?;
    let stated = claim.difference.as_ref()?;
    let apart = range(claim, Difference::Points);
    Some(apart.is_some_and(|apart| stated.is_rounded_from_range(apart)))
}

fn reproduces(claim: &Claim, formula: Difference) -> bool {
    let exact = formula.of(claim.a.value, claim.b.value);
    exact.is_some_and(|exact| claim.stated_difference().is_rounded_from(exact))
}

fn is_within_rounding(claim: &Claim, formula: Difference) -> bool {
    range(claim, formula).is_some_and(|range| claim.stated_difference().is_rounded_from_range(range))
}

/// The lowest and the highest difference of figures that round to the printed ones; `None` where the formula may divide
/// by zero. While one figure stays above the other, each formula is monotonic in each figure, so its extremes are at
/// the ends of the figures' ranges. Where the ranges overlap, the figures may be equal.
fn range(claim: &Claim, formula: Difference) -> Option<[f64; 2]> {
    let [a, b] = [claim.a.range(), claim.b.range()];
    if formula != Difference::Points && (a[0] <= 0.0 || b[0] <= 0.0) {
        return None;
    }
    let mut low = f64::INFINITY;
    let mut high = f64::NEG_INFINITY;
    for difference in a.iter().flat_map(|a| b.iter().map(|b| formula.of(*a, *b))) {
        let difference = difference?;
        (low, high) = (low.min(difference), high.max(difference));
    }
    let may_be_equal = a[0] <= b[1] && b[0] <= a[1];
    Some([if may_be_equal { 0.0 } else { low }, high])
}

/// The formulas that give the printed difference. A difference stated in the figures' unit is compared with points
/// only. A difference stated in per cent is compared with points too, because studies also call percentage points per
/// cent.
fn matching(claim: &Claim, is: fn(&Claim, Difference) -> bool) -> Vec<Difference> {
    let mut formulas = Vec::new();
    for formula in Difference::ALL.iter().copied() {
        let is_comparable = claim.percent.is_some() || formula == Difference::Points;
        if is_comparable && is(claim, formula) {
            formulas.push(formula);
        }
    }
    formulas
}

fn recompute(claim: &Claim) -> Recomputed {
    Recomputed {
        symmetric: apply_formula(claim, Difference::Symmetric),
        lower: apply_formula(claim, Difference::Lower),
        higher: apply_formula(claim, Difference::Higher),
        points: apply_formula(claim, Difference::Points),
    }
}

/// The difference of a claim's figures by a formula, to six decimals.
fn apply_formula(claim: &Claim, formula: Difference) -> Option<f64> {
    let exact = formula.of(claim.a.value, claim.b.value)?;
    Some((exact * 1e6).round() / 1e6)
}

#[derive(Serialize)]
struct AuditRow<'a> {
    source: &'a str,
    location: &'a str,
    metric: &'a str,
    published: f64,
    recomputed: Recomputed,
    reproduced_by: Option<Difference>,
    consistent_with_rounding: Vec<Difference>,
}

/// The audit as a JSON list, one object per claim, one newline at the end.
pub fn audit_json(all: &Reference) -> String {
    let mut rows = Vec::new();
    for Audited { claim, recomputed, reproduced_by, within_rounding, .. } in audit(&all.claims) {
        rows.push(AuditRow {
            source: &claim.source,
            location: &claim.location,
            metric: &claim.metric,
            published: claim.stated_difference().value,
            recomputed,
            reproduced_by,
            consistent_with_rounding: within_rounding,
        });
    }
    serde_json::to_string_pretty(&rows).expect("names and numbers become JSON") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use Difference::{Higher, Lower, Points, Symmetric};

    fn claims() -> Vec<Claim> {
        Reference::built_in().unwrap().claims
    }

    /// Each was computed by hand with a calculator from the two printed figures: study, both figures, printed
    /// difference. The comment after each line has the formulas' results (symmetric, lower, higher; or points). It says
    /// which are consistent with rounding.
    const NOT_REPRODUCED: [(&str, &str, &str, &str); 22] = [
        ("soorty2013linux", "698.26", "798.67", "13.41"), // 13.4155, 14.3800, 12.5722; rounding
        ("soorty2013linux", "5.56", "7.53", "30.09"),     // 30.0993, 35.4317, 26.1620; rounding
        ("soorty2013linux", "3.11", "7.53", "83.0"),      // 83.0827, 142.122, 58.6985; rounding
        ("soorty2013linux", "0.16", "0.22", "31.5"),      // 31.5789, 37.5000, 27.2727; rounding
        ("soorty2013linux", "28", "24.5", "2.5"),         // 13.3333, 14.2857, 12.5000; points 3.5
        ("ogunleye2016", "68.85", "68.74", "1.32"),       // points 0.11
        ("ogunleye2016", "83.48", "83.33", "4.52"),       // points 0.15
        ("ogunleye2016", "82.86", "89.62", "7.38"),       // points 6.76
        ("ogunleye2016", "83.35", "90.44", "6.72"),       // points 7.09
        ("ogunleye2016", "82.86", "89.62", "6.94"),       // points 6.76
        ("ogunleye2016", "83.35", "90.44", "6.89"),       // points 7.09
        ("kolahi2009lan", "87.48", "85.27", "2.74"),      // 2.5586, 2.5918, 2.5263; points 2.21
        ("kolahi2009lan", "73.29", "69.13", "6.01"),      // 5.8419, 6.0176, 5.6761; rounding
        ("kolahi2009lan", "82.56", "78.91", "4.62"),      // 4.5210, 4.6255, 4.4210; rounding
        ("kolahi2009lan", "71.96", "70.62", "1.89"),      // 1.8796, 1.8975, 1.8621; rounding
        ("kolahi2009lan", "86.77", "86.39", "1.89"),      // 0.4389, 0.4399, 0.4379; points 0.38
        ("kolahi2009lan", "73.29", "73.31", "1.62"),      // 0.0273, 0.0273, 0.0273; points 0.02
        ("kolahi2009lan", "28.97", "30.0", "3.55"),       // 3.4933, 3.5554, 3.4333; rounding
        ("kolahi2009lan", "37.6", "35.3", "6.03"),        // 6.3100, 6.5156, 6.1170; rounding
        ("kolahi2009lan", "39.03", "30.0", "23.13"),      // 26.1625, 30.1000, 23.1360; rounding
        ("kolahi2009lan", "13.58", "1.18", "92.56"),      // 168.022, 1050.85, 91.3108; points 12.40
        ("kolahi2009lan", "14.43", "2.28", "83.86"),      // 145.422, 532.895, 84.1996; points 12.15
    ];

    #[test]
    fn no_formula_reproduces_22_of_61() {
        let claims = claims();
        let audited = audit(&claims);
        assert_eq!(audited.len(), 61);
        let not_reproduced = list_figures(&audited, |audited| audited.reproduced_by.is_none());
        assert_eq!(not_reproduced, NOT_REPRODUCED.map(copy_row));
    }

    /// Those of the 22 that are differences of figures which round to the printed ones.
    #[test]
    fn ten_of_the_22_are_consistent_with_rounding() {
        let claims = claims();
        let audited = audit(&claims);
        let expected = [0, 1, 2, 3, 12, 13, 14, 17, 18, 19].map(|place| copy_row(NOT_REPRODUCED[place]));
        assert_eq!(list_figures(&audited, |audited| !audited.within_rounding.is_empty()), expected);
        // 37.6 and 35.3: from 37.55 and 35.35 it is 5.86 %, from 37.65 and 35.25 6.37 %; the printed ones give 6.12 %.
        let round_trip =
            audited.iter().find(|audited| audited.claim.stated_difference().to_string() == "6.03").unwrap();
        assert_eq!(round_trip.within_rounding, [Higher]);
    }

    #[test]
    fn ranges_are_those_of_the_figures_ends() {
        assert_eq!(round_range("28", "24.5", Points), Some([2.95, 4.05]));
        assert_eq!(round_range("1.0", "2.0", Lower), Some([85.714286, 115.789474]));
        assert_eq!(round_range("1.0", "2.0", Higher), Some([46.153846, 53.658537]));
        assert_eq!(round_range("1.0", "1.1", Points), Some([0.0, 0.2]));
        // Equal within their digits.
        assert_eq!(round_range("5", "5", Points), Some([0.0, 1.0]));
        // A figure that may be zero is no base.
        assert_eq!(round_range("0", "1", Lower), None);
    }

    /// The range of a claim with these figures, to six decimals.
    fn round_range(a: &str, b: &str, formula: Difference) -> Option<[f64; 2]> {
        let mut claim = claims()[20].clone();
        claim.a = a.parse().unwrap();
        claim.b = b.parse().unwrap();
        range(&claim, formula).map(|range| range.map(|end| (end * 1e6).round() / 1e6))
    }

    /// Both figures and the stated difference of some claims, as printed, with their study.
    fn list_figures(audited: &[Audited<'_>], is: fn(&Audited<'_>) -> bool) -> Vec<[String; 4]> {
        let own = audited.iter().filter(|audited| is(audited));
        own.map(|Audited { claim, .. }| {
            [
                claim.source.clone(),
                claim.a.to_string(),
                claim.b.to_string(),
                claim.stated_difference().to_string(),
            ]
        })
        .collect()
    }

    fn copy_row((source, a, b, stated): (&str, &str, &str, &str)) -> [String; 4] {
        [source, a, b, stated].map(str::to_owned)
    }

    #[test]
    fn each_study_has_its_formulas() {
        let claims = claims();
        let audited = audit(&claims);
        assert_eq!(count_by_formula(&audited, "soorty2013linux"), [10, 0, 2, 4]);
        assert_eq!(count_by_formula(&audited, "sarkar2013winlin"), [0, 0, 3, 0]);
        assert_eq!(count_by_formula(&audited, "ogunleye2016"), [0, 0, 0, 3]);
        assert_eq!(count_by_formula(&audited, "kolahi2011wlan"), [0, 0, 0, 12]);
        assert_eq!(count_by_formula(&audited, "kolahi2009lan"), [0, 2, 3, 0]);
    }

    /// How many of a study's claims each formula reproduces.
    fn count_by_formula(audited: &[Audited<'_>], source: &str) -> [usize; 4] {
        [Symmetric, Lower, Higher, Points].map(|formula| {
            let own = audited.iter().filter(|audited| audited.claim.source == source);
            own.filter(|audited| audited.reproduced_by == Some(formula)).count()
        })
    }

    #[test]
    fn a_difference_beside_the_per_cent_is_checked_too() {
        let claims = claims();
        let wrong: Vec<_> = audit(&claims)
            .into_iter()
            .filter(|audited| audited.difference_agrees == Some(false))
            .map(|audited| audited.claim.difference.as_ref().unwrap().to_string())
            .collect();
        // 2.27 is consistent with rounding: 37.6 and 35.3 are 2.2 to 2.4 apart.
        assert_eq!(wrong, ["2.34", "1.19", "12.57", "11.85"]);
    }

    const FIELDS: [&str; 7] = [
        "consistent_with_rounding",
        "location",
        "metric",
        "published",
        "recomputed",
        "reproduced_by",
        "source",
    ];

    #[test]
    fn json_has_an_object_of_these_fields_for_each_claim() {
        let text = audit_json(&Reference::built_in().unwrap());
        let rows: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(&text).unwrap();
        assert_eq!(rows.len(), 61);
        for row in &rows {
            let fields: Vec<&str> = row.keys().map(String::as_str).collect();
            assert_eq!(fields, FIELDS);
            let formulas: Vec<&str> =
                row["recomputed"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(formulas, ["higher", "lower", "points", "symmetric"]);
        }
        assert_eq!(rows[0]["recomputed"]["points"], 113.97);
        assert_eq!(rows[0]["reproduced_by"], "symmetric");
        assert!(rows[3]["reproduced_by"].is_null());
        assert_eq!(rows[3]["consistent_with_rounding"], serde_json::json!(["symmetric"]));
        assert_eq!(rows[0]["consistent_with_rounding"], serde_json::json!([]));
    }
}
