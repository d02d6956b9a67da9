//! What a path loses at which load, for the page.

use crate::findings::loss_by_load::{ABOUT, ArmGroup, METRIC, count_slices, describe, groups};
use crate::page::document::{LossLine, LossPointView, LossView};
use crate::rendering::document::plain;
use stacklab_model::{Findings, LossByLoad, LossPoint};

pub(super) fn views(findings: &Findings) -> Vec<LossView> {
    groups(findings).iter().filter(|group| group.has_points()).map(view).collect()
}

fn view(group: &ArmGroup<'_>) -> LossView {
    let decimals = group.decimals();
    let mut lines = Vec::new();
    for (arm, slices) in &group.arms {
        let LossByLoad { points, .. } = slices;
        lines.push(LossLine {
            label: plain(arm),
            counted: count_slices(arm, slices),
            points: points.iter().map(|point| point_view(point, decimals)).collect(),
        });
    }
    LossView {
        name: group.name.clone(),
        title: format!("loss by load{}", group.place),
        about: ABOUT.to_owned(),
        unit: METRIC.unit().symbol().to_owned(),
        lines,
    }
}

fn point_view(point: &LossPoint, decimals: usize) -> LossPointView {
    let LossPoint { load, loss, .. } = point;
    LossPointView {
        load: *load,
        loss: 100.0 * loss.mean.unwrap_or(0.0),
        low: loss.interval.map(|interval| 100.0 * interval.low),
        high: loss.interval.map(|interval| 100.0 * interval.high),
        shown: describe(point, decimals),
        slices: loss.n,
    }
}
