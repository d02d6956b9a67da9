//! The slices of a campaign's searches, by their load.

use crate::runs::estimate_of;
use stacklab_model::{
    Cell, Estimate, Interval, LossByLoad, LossPoint, POSSIBLE_RATES, Pacing, RunRecord, SearchSlice,
};
use std::collections::{BTreeMap, BTreeSet};

/// How much higher each class of loads is than the one before. The steps of a search that count are of 1 %.
const CLASS_WIDTHS: [f64; 6] = [0.01, 0.02, 0.05, 0.1, 0.25, 0.5];
/// The most classes between the loads of a twentieth and of nineteen twentieths of a cell's slices.
const MAX_USUAL_CLASSES: i64 = 12;
/// The most classes of all loads of a cell; none has more of the widest ones.
const MAX_CLASSES: usize = 60;

const SHARES: Interval = Interval { low: 0.0, high: 1.0 };

/// The slices of one cell.
#[derive(Default)]
struct Searched {
    /// Load, share that was lost or late, and whether the slice was bad.
    valid: Vec<(f64, f64, bool)>,
    disturbed: u32,
}

/// What was lost at which load, for each of these cells that was searched. Runs without host reports have no slices.
pub(super) fn collect_loss(cells: &[Cell], runs: &[RunRecord]) -> Vec<LossByLoad> {
    let mut searched: Vec<(&Cell, Searched)> = cells.iter().map(|cell| (cell, Searched::default())).collect();
    for run in runs.iter().filter(|run| run.is_valid()) {
        let Pacing::Search(search) = run.spec.probe.pacing else { continue };
        let Some(sender) = run.host_reports.first().filter(|report| !report.search.is_empty()) else {
            continue;
        };
        // Those of the A/A check are of no cell.
        if let Some((_, slices)) = searched.iter_mut().find(|(cell, _)| **cell == run.trial.cell) {
            slices.add(&sender.search, search.loss_ppm);
        }
    }
    searched.retain(|(_, slices)| !slices.valid.is_empty() || slices.disturbed > 0);
    let width = choose_width(&mut searched);
    searched.into_iter().map(|(cell, slices)| slices.by_load(cell, width)).collect()
}

impl Searched {
    fn add(&mut self, slices: &[SearchSlice], loss_ppm: u32) {
        // Those of a goal's trials have another allowed loss, and other lengths; connections are another load.
        let in_turns = slices.iter().filter(|slice| slice.trial.is_none() && slice.connections.is_none());
        for slice in in_turns.filter(|slice| POSSIBLE_RATES.contains(&slice.load)) {
            match slice.lost_share(loss_ppm) {
                Some(share) => self.valid.push((slice.load, share, slice.is_bad())),
                None => self.disturbed += 1,
            }
        }
    }

    /// Whether its slices, by load, need few classes of this width.
    fn has_few(&self, width: f64) -> bool {
        let Some(last) = self.valid.len().checked_sub(1) else { return true };
        let [low, high] = [last / 20, last - last / 20].map(|place| class(self.valid[place].0, width));
        let all: BTreeSet<i64> = self.valid.iter().map(|(load, ..)| class(*load, width)).collect();
        high - low < MAX_USUAL_CLASSES && all.len() <= MAX_CLASSES
    }

    fn by_load(self, cell: &Cell, width: f64) -> LossByLoad {
        let mut classes: BTreeMap<i64, (Vec<f64>, u32)> = BTreeMap::new();
        for (load, share, is_bad) in &self.valid {
            let (shares, bad) = classes.entry(class(*load, width)).or_default();
            shares.push(*share);
            *bad += u32::from(*is_bad);
        }
        let mut points = Vec::new();
        for (class, (shares, bad)) in classes {
            let loss = estimate_of(&shares);
            let interval = loss.interval.map(|interval| interval.clip_to(SHARES));
            points.push(LossPoint { load: middle(class, width), bad, loss: Estimate { interval, ..loss } });
        }
        LossByLoad { cell: cell.clone(), valid: self.valid.len() as u32, disturbed: self.disturbed, points }
    }
}

/// The class of a load: the classes' middles are powers of one number.
fn class(load: f64, width: f64) -> i64 {
    (load.ln() / width.ln_1p()).round() as i64
}

/// The middle of a class, with four digits.
fn middle(class: i64, width: f64) -> f64 {
    let exact = (class as f64 * width.ln_1p()).exp();
    format!("{exact:.3e}").parse().unwrap_or(exact)
}

/// The narrowest classes of which no cell needs too many: at all, and for nine tenths of its slices, since a search
/// begins far from where it ends.
fn choose_width(searched: &mut [(&Cell, Searched)]) -> f64 {
    for (_, slices) in searched.iter_mut() {
        slices.valid.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let [.., widest] = CLASS_WIDTHS;
    let mut widths = CLASS_WIDTHS.into_iter();
    widths.find(|width| searched.iter().all(|(_, slices)| slices.has_few(*width))).unwrap_or(widest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, empty_report, run};
    use stacklab_model::{Family, HostReport, Metric, Role, SearchOutcome, SearchSpec, SliceConnections};

    const LOSS_PPM: u32 = 5000;

    /// A slice of 1000 messages that loses what is above 1000 messages per second.
    fn slice(load: f64) -> SearchSlice {
        let received = (1000.0 * (1000.0 / load).min(1.0)).round() as u64;
        let outcome = if received < 995 { SearchOutcome::Bad } else { SearchOutcome::Good };
        SearchSlice { load, offered: 1000, received, outcome, ..SearchSlice::default() }
    }

    fn run_with(block: u32, family: Family, slices: Vec<SearchSlice>) -> RunRecord {
        let mut run = run(block, &cell(family, 64), Metric::LoadAtLoss, 1000.0);
        let search = SearchSpec::new(LOSS_PPM);
        run.spec.probe.pacing = Pacing::Search(search);
        run.host_reports = vec![HostReport { search: slices, ..empty_report(Role::Sender) }];
        run
    }

    #[test]
    fn slices_of_all_blocks_are_put_together_by_load() {
        let invalid = SearchOutcome::Invalid("the sender waited".to_owned());
        let disturbed = SearchSlice { outcome: invalid, ..slice(1000.0) };
        let loads = [980.0, 990.0, 1000.0, 1010.0, 1020.0];
        let slices = loads.map(slice).to_vec();
        let connections = SearchSlice { connections: Some(SliceConnections::default()), ..slice(1000.0) };
        let runs = [
            run_with(0, Family::Ipv6, [slices.clone(), vec![connections]].concat()),
            run_with(0, Family::Ipv4, [slices.clone(), vec![disturbed]].concat()),
            run_with(1, Family::Ipv4, slices),
        ];
        let cells = [Family::Ipv4, Family::Ipv6].map(|family| cell(family, 64));
        let found = collect_loss(&cells, &runs);
        let [first, second] = &found[..] else { panic!("{found:?}") };
        assert_eq!((first.cell.family, first.valid, first.disturbed), (Family::Ipv4, 10, 1));
        assert_eq!((second.cell.family, second.valid, second.disturbed), (Family::Ipv6, 5, 0));
        let rows: Vec<(i64, usize, u32, f64)> = first
            .points
            .iter()
            .map(|point| (point.load.round() as i64, point.loss.n, point.bad, point.loss.mean.unwrap()))
            .collect();
        assert_eq!(rows.len(), 5, "{rows:?}");
        assert!(rows.iter().zip(loads).all(|(row, load)| (row.0 as f64 / load - 1.0).abs() < 0.005));
        assert_eq!(
            rows.iter().map(|row| (row.1, row.2)).collect::<Vec<_>>(),
            [(2, 0), (2, 0), (2, 0), (2, 2), (2, 2)]
        );
        assert_eq!((rows[2].3, rows[4].3), (0.0, 0.02));
        // The classes are those of all cells.
        assert!(first.points.iter().zip(&second.points).all(|(one, other)| one.load == other.load));
    }

    #[test]
    fn a_wide_range_has_wide_classes() {
        let far: Vec<SearchSlice> = (0..100).map(|n| slice(500.0 * 1.02_f64.powi(n))).collect();
        let found = collect_loss(&[cell(Family::Ipv4, 64)], &[run_with(0, Family::Ipv4, far)]);
        assert!(found[0].points.len() <= 1 + MAX_USUAL_CLASSES as usize, "{}", found[0].points.len());
        // One slice far away, as a search begins, widens nothing.
        let mut near: Vec<SearchSlice> = (0..60).map(|n| slice(1000.0 + f64::from(n % 7))).collect();
        near.push(slice(2000.0));
        let found = collect_loss(&[cell(Family::Ipv4, 64)], &[run_with(0, Family::Ipv4, near)]);
        assert_eq!(found[0].points.iter().map(|point| point.loss.n).collect::<Vec<_>>(), [27, 33, 1]);
    }

    #[test]
    fn hostile_slices_say_nothing() {
        let slices = [f64::NAN, f64::INFINITY, 0.0, -1.0, f64::MIN_POSITIVE, f64::MAX, 0.001, 1e9];
        let slices = slices.map(slice).to_vec();
        let found = collect_loss(&[cell(Family::Ipv4, 64)], &[run_with(0, Family::Ipv4, slices)]);
        assert_eq!((found[0].valid, found[0].points.len()), (2, 2));
        // All loads that a trial may have, one for each class.
        let spread: Vec<SearchSlice> = (0..2777).map(|n| slice(0.001 * 1.01_f64.powi(n))).collect();
        let found = collect_loss(&[cell(Family::Ipv4, 64)], &[run_with(0, Family::Ipv4, spread)]);
        assert!(found[0].points.len() <= 70, "{}", found[0].points.len());
        assert_eq!(collect_loss(&[cell(Family::Ipv4, 64)], &[run_with(0, Family::Ipv4, Vec::new())]), []);
    }
}
