//! Progress of a campaign, on standard error. On a terminal: a bar, the verdicts so far and a small chart. Elsewhere:
//! one line per block.

use crate::chart::LiveChart;
use crate::schedule::Schedule;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stacklab_model::{RunRecord, RunStatus, Trial, print_duration};
use stacklab_report::{difference, figure_text};
use stacklab_study::Study;
use std::io::IsTerminal;
use std::time::Instant;

const PARTS: f64 = 1000.0;

/// How much of a campaign is over, 0 to 1: by trials or by the budget, whichever ends it sooner.
fn share(passed: u64, at_most: u64, spent_ns: u64, budget_ns: Option<u64>) -> f64 {
    let of = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    of(passed, at_most).max(budget_ns.map_or(0.0, |budget| of(spent_ns, budget))).min(1.0)
}

/// Shows the progress of a campaign.
pub struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    /// Number of runs since the program started, and their total duration in nanoseconds.
    runs: u64,
    spent_ns: u64,
    /// Maximum number of trials when the campaign ends.
    at_most: u64,
    passed: u64,
    /// Nanoseconds left in the study's budget, if it has one.
    budget_ns: Option<u64>,
    block: String,
    latest: String,
    verdicts: String,
    chart: Option<LiveChart>,
    /// Whether only the time is shown: runs that are sampled give no verdicts.
    is_by_time: bool,
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new()
    }
}

impl Progress {
    /// Shows nothing yet.
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:20.cyan/blue} {wide_msg}\n{prefix}")
                .expect("a constant template");
            let bar = ProgressBar::with_draw_target(Some(PARTS as u64), ProgressDrawTarget::stderr());
            bar.with_style(style)
        });
        Progress {
            bar,
            started: Instant::now(),
            runs: 0,
            spent_ns: 0,
            at_most: 1,
            passed: 0,
            budget_ns: None,
            block: String::new(),
            latest: String::new(),
            verdicts: String::new(),
            chart: None,
            is_by_time: false,
        }
    }

    /// Shows the time instead of verdicts.
    pub fn by_time() -> Self {
        Progress { is_by_time: true, ..Progress::new() }
    }

    pub(crate) fn block(&mut self, study: &Study, schedule: &Schedule<'_>, trials: &[Trial]) {
        let blocks_left = u64::from(study.rule.max - schedule.block());
        self.at_most = self.passed + blocks_left * trials.len() as u64;
        self.budget_ns = study.rule.budget_ns;
        self.block = format!("block {}/{}", schedule.block() + 1, study.rule.max);
        if self.is_by_time {
            if self.bar.is_none() {
                eprintln!("{:>5} s  {}{}", self.started.elapsed().as_secs(), self.block, self.left());
            }
            return;
        }
        let (questions, settled) = schedule.answered();
        let counts: Vec<String> =
            schedule.verdicts().into_iter().map(|(verdict, n)| format!("{verdict} {n}")).collect();
        self.verdicts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
        if let (None, Some(first)) = (&self.chart, study.comparisons.first()) {
            self.chart = first.metrics.first().map(|metric| LiveChart::new(&study.cells, *metric));
        }
        match &self.bar {
            Some(bar) => {
                self.verdicts = match schedule.differences() {
                    [] => format!("{settled} of {questions} comparisons settled{}", self.verdicts),
                    few => few
                        .iter()
                        .map(|(metric, effect)| difference(*metric, effect))
                        .collect::<Vec<_>>()
                        .join(", "),
                };
                self.draw(bar);
            }
            None => eprintln!(
                "{:>5} s  {}: {} trials, {settled} of {questions} comparisons settled{}",
                self.started.elapsed().as_secs(),
                self.block,
                trials.len(),
                self.verdicts
            ),
        }
    }

    pub(crate) fn trial(&mut self, trial: &Trial) {
        let Some(bar) = &self.bar else { return };
        let left = self.left();
        bar.set_message(format!("{}{left}  now {}{}", self.block, trial.cell.label(), self.latest));
    }

    /// Called when a trial's run was already in the record.
    pub(crate) fn kept(&mut self, run: &RunRecord) {
        self.pass();
        if let Some(chart) = &mut self.chart {
            chart.add(run);
        }
    }

    pub(crate) fn done(&mut self, run: &RunRecord) {
        self.runs += 1;
        self.spent_ns += run.wall_ns;
        self.pass();
        if let RunStatus::Invalid(reasons) = &run.status {
            self.say(&format!("invalid: {}: {}", run.trial, reasons.join("; ")));
        }
        let mut asked = run.spec.probe.metrics.iter();
        let first = asked.find_map(|metric| Some((metric, run.values.get(metric)?.measured()?)));
        if let Some((metric, figure)) = first {
            let figure = figure_text(*metric, figure);
            self.latest = format!("; last {}: {} {figure}", run.trial.cell.label(), metric.label());
        }
        if let (Some(bar), Some(chart)) = (&self.bar, &mut self.chart) {
            chart.add(run);
            self.draw(bar);
        }
    }

    fn draw(&self, bar: &ProgressBar) {
        let chart = self.chart.as_ref().map(LiveChart::draw).unwrap_or_default();
        bar.set_prefix(format!("{}\n{chart}", self.verdicts).trim_end().to_owned());
    }

    pub(crate) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// Called when the campaign has ended, for any reason.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn pass(&mut self) {
        self.passed += 1;
        if let Some(bar) = &self.bar {
            bar.set_position(
                (PARTS * share(self.passed, self.at_most, self.spent_ns, self.budget_ns)) as u64,
            );
        }
    }

    /// `, 12 s left`; empty before the first run.
    fn left(&self) -> String {
        self.left_ns().map_or_else(String::new, |ns| {
            format!(", {} left", print_duration(ns.div_ceil(1_000_000_000) * 1_000_000_000))
        })
    }

    /// Maximum remaining nanoseconds, estimated from the runs so far.
    fn left_ns(&self) -> Option<u64> {
        let each = self.spent_ns.checked_div(self.runs)?;
        let by_count = each * (self.at_most - self.passed.min(self.at_most));
        Some(self.budget_ns.map_or(by_count, |budget| by_count.min(budget.saturating_sub(self.spent_ns))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_is_full_when_the_sooner_limit_ends_the_campaign() {
        // A budget of a minute ends it after 4 of 40 blocks.
        assert_eq!(share(20, 400, 30_000_000_000, Some(60_000_000_000)), 0.5);
        assert_eq!(share(40, 400, 61_000_000_000, Some(60_000_000_000)), 1.0);
        assert_eq!(share(200, 400, 1, Some(60_000_000_000)), 0.5);
        assert_eq!(share(100, 400, 1, None), 0.25);
        assert_eq!(share(0, 0, 0, None), 0.0);
    }
}
