//! Progress of a campaign, on standard error. On a terminal: a bar, the verdicts so far and a small chart. Elsewhere:
//! one line per block.

use crate::live_chart::LiveChart;
use crate::notice::{note, wrap_for_stderr};
use crate::schedule::Schedule;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stacklab_model::{RunRecord, RunStatus, SpentTime, Trial, count, print_duration, say};
use stacklab_report::{difference, figure_text};
use stacklab_study::{MIN_BLOCKS, Study};
use stacklab_traffic::sign_of_life::SignOfLife;
use std::io::IsTerminal;
use std::time::Instant;

const PARTS: f64 = 1000.0;

/// How much of a campaign is over, 0 to 1: by trials or by the budget, whichever ends it sooner.
fn share(passed: u64, at_most: u64, spent_ns: u64, budget_ns: Option<u64>) -> f64 {
    let of_trials = divide(passed, at_most);
    let of_budget = budget_ns.map_or(0.0, |budget_ns| divide(spent_ns, budget_ns));
    of_trials.max(of_budget).min(1.0)
}

fn divide(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Shows the progress of a campaign.
pub struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    /// When the first block began.
    began: Option<Instant>,
    /// Number of runs since the program started, and their total duration in nanoseconds.
    runs: u64,
    measured_ns: u64,
    /// What is spent of the budget, by runs from before a resumption too.
    spent: SpentTime,
    /// Maximum number of trials when the campaign ends.
    at_most: u64,
    /// Number of trials without which nothing can be compared: the budget does not end a campaign before.
    at_least: u64,
    passed: u64,
    /// Trials of the block before.
    trials_before: Option<u64>,
    /// Nanoseconds of the study's budget, if it has one.
    budget_ns: Option<u64>,
    block: String,
    latest: String,
    verdicts: String,
    chart: Option<LiveChart>,
    /// From the first trial on; `None` if nothing is shown.
    sign_of_life: Option<SignOfLife>,
    /// Whether only the time is shown: runs that are sampled give no verdicts.
    is_by_time: bool,
}

impl Progress {
    /// Shows nothing yet; later the time only, or verdicts too.
    pub fn new(is_by_time: bool) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:12.cyan/blue} {wide_msg}\n{prefix}")
                .expect("a constant template");
            let bar = ProgressBar::with_draw_target(Some(PARTS as u64), ProgressDrawTarget::stderr());
            bar.with_style(style)
        });
        Progress {
            bar,
            started: Instant::now(),
            began: None,
            runs: 0,
            measured_ns: 0,
            spent: SpentTime::default(),
            at_most: 1,
            at_least: 0,
            passed: 0,
            trials_before: None,
            budget_ns: None,
            block: String::new(),
            latest: String::new(),
            verdicts: String::new(),
            chart: None,
            sign_of_life: None,
            is_by_time,
        }
    }

    /// Shows nothing, as of simulated campaigns.
    pub fn hidden() -> Self {
        let mut progress = Progress::new(true);
        progress.bar = Some(ProgressBar::hidden());
        progress
    }

    /// Before the first block: runs that the record holds are drawn too.
    pub(crate) fn prepare(&mut self, study: &Study) {
        if let (false, Some(first)) = (self.is_by_time, study.comparisons.first()) {
            self.chart = first.metrics.first().map(|metric| LiveChart::new(&study.cells, *metric));
        }
    }

    /// Called before a block of this many trials, of which some are missing in the record.
    pub(crate) fn block(&mut self, study: &Study, schedule: &Schedule<'_>, trials: u64, missing: u64) {
        self.began.get_or_insert_with(Instant::now);
        let further = u64::from(study.rule.max - schedule.block).saturating_sub(1);
        // Blocks with trials of arms against themselves take turns with blocks without.
        let per_block = trials.midpoint(self.trials_before.replace(trials).unwrap_or(trials));
        self.at_most = self.passed + missing + further * per_block;
        let needed = u64::from(MIN_BLOCKS.saturating_sub(schedule.block));
        self.at_least = self.passed + if needed == 0 { 0 } else { missing + (needed - 1) * trials };
        self.budget_ns = study.rule.budget_ns;
        self.block = format!("block {}/{}", schedule.block + 1, study.rule.max);
        if self.is_by_time {
            if self.bar.is_none() {
                say!(
                    "{:>5} s  {}{}",
                    self.started.elapsed().as_secs(),
                    self.block,
                    self.describe_time_left()
                );
            }
            return;
        }
        let (questions, settled) = schedule.count_questions();
        let counts: Vec<String> =
            schedule.verdicts().into_iter().map(|(verdict, n)| format!("{verdict} {n}")).collect();
        self.verdicts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
        if let Some(appearing) = &schedule.appearing {
            self.verdicts += &format!("; {}", appearing.describe());
        }
        match &self.bar {
            Some(bar) => {
                self.verdicts = match &schedule.differences[..] {
                    [] => format!(
                        "{settled} of {} settled, the others at the end{}",
                        count(questions, "comparison"),
                        self.verdicts
                    ),
                    few => few
                        .iter()
                        .map(|(metric, effect)| difference(*metric, effect))
                        .collect::<Vec<_>>()
                        .join(", "),
                };
                self.draw(bar);
            }
            None => say!(
                "{:>5} s  {}: {}, {settled} of {} settled, the others at the end{}",
                self.started.elapsed().as_secs(),
                self.block,
                count(trials, "trial"),
                count(questions, "comparison"),
                self.verdicts
            ),
        }
    }

    pub(crate) fn trial(&mut self, trial: &Trial) {
        let now = match &self.bar {
            Some(bar) if bar.is_hidden() => return,
            Some(bar) => {
                let now = format!("{}{}  now {}", self.block, self.describe_time_left(), trial.cell.label());
                bar.set_message(now.clone());
                now
            }
            None => format!("{}: {} {}", self.block, trial.probe, trial.cell.label()),
        };
        let shown = self.bar.clone();
        let started = self.started;
        self.sign_of_life
            .get_or_insert_with(|| {
                SignOfLife::new(move |what, seconds| show_long(&shown, started, what, seconds))
            })
            .begin(now);
    }

    /// Called when a trial's run was already in the record.
    pub(crate) fn count_kept_run(&mut self, run: &RunRecord) {
        self.spent.add(run);
        self.pass();
        if let Some(chart) = &mut self.chart {
            chart.add(run);
        }
    }

    pub(crate) fn done(&mut self, run: &RunRecord) {
        self.runs += 1;
        self.measured_ns = self.measured_ns.saturating_add(run.wall_ns);
        self.spent.add(run);
        self.pass();
        if let RunStatus::Invalid(reasons) = &run.status {
            self.say(&format!("invalid: {}: {}", run.trial, reasons.join("; ")));
        }
        let mut asked = run.spec.probe.metrics.iter();
        let first = asked.find_map(|metric| Some((metric, run.values.get(metric)?.measured()?)));
        if let Some((metric, figure)) = first {
            let figure = figure_text(*metric, figure);
            self.latest = format!("last {}: {} {figure}", run.trial.cell.label(), metric.label());
        }
        if let Some(chart) = &mut self.chart {
            chart.add(run);
        }
        if let Some(bar) = &self.bar {
            self.draw(bar);
        }
    }

    fn draw(&self, bar: &ProgressBar) {
        let chart = self.chart.as_ref().map(LiveChart::draw).unwrap_or_default();
        let lines = [&self.latest, &self.verdicts, &chart].map(|lines| wrap_for_stderr(lines));
        let lines: Vec<&str> =
            lines.iter().map(|lines| lines.trim_end()).filter(|lines| !lines.is_empty()).collect();
        bar.set_prefix(lines.join("\n"));
    }

    pub(crate) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note(line)),
            None => note(line),
        }
    }

    fn pass(&mut self) {
        self.passed += 1;
        if let Some(bar) = &self.bar {
            bar.set_position(
                (PARTS * share(self.passed, self.at_most, self.spent.ns(), self.budget_ns)) as u64,
            );
        }
    }

    /// `, 12 s left`, at most, estimated from the runs so far and what was prepared between them; empty before the
    /// first run.
    fn describe_time_left(&self) -> String {
        let elapsed_ns = self.began.map_or(0, |began| began.elapsed().as_nanos() as u64);
        let Some(each_ns) = elapsed_ns.max(self.measured_ns).checked_div(self.runs) else {
            return String::new();
        };
        let mut left_ns = each_ns.saturating_mul(self.at_most.saturating_sub(self.passed));
        if let Some(budget_ns) = self.budget_ns {
            let at_least_ns = each_ns.saturating_mul(self.at_least.saturating_sub(self.passed));
            left_ns = left_ns.min(budget_ns.saturating_sub(self.spent.ns()).max(at_least_ns));
        }
        match left_ns.div_ceil(1_000_000_000) {
            0 => String::new(),
            seconds => format!(", {} left", print_duration(seconds * 1_000_000_000)),
        }
    }
}

/// Shows for how long a trial has taken so far.
fn show_long(bar: &Option<ProgressBar>, started: Instant, what: &str, seconds: u64) {
    match bar {
        Some(bar) => bar.set_message(format!("{what}, {seconds} s so far")),
        None => say!("{:>5} s  {what}, {seconds} s so far", started.elapsed().as_secs()),
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.sign_of_life = None;
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Cell, Family, Metric, Probe, SizeOf, Transport, Value};

    fn run(started_unix_ns: u64, wall_ns: u64) -> RunRecord {
        let cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 128);
        let trial = Trial { block: 0, position: 0, cell, probe: Probe::Stream };
        let run = RunRecord::with_value(trial, Metric::Throughput, Value::Measured(1.0));
        RunRecord { started_unix_ns, wall_ns, ..run }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn runs_before_a_resumption_spend_the_budget() {
        let mut progress = Progress::hidden();
        progress.at_most = 1000;
        progress.budget_ns = Some(60 * SECOND);
        progress.count_kept_run(&run(0, 40 * SECOND));
        assert_eq!(progress.describe_time_left(), "", "nothing was measured yet");
        progress.done(&run(0, 5 * SECOND));
        assert_eq!(progress.describe_time_left(), ", 15 s left");
    }

    #[test]
    fn time_left_has_preparation_and_two_blocks_in_it() {
        let mut progress = Progress::hidden();
        progress.at_most = 1000;
        progress.budget_ns = Some(60 * SECOND);
        progress.done(&run(0, 4 * SECOND));
        // It took 6 s to prepare the second one.
        progress.done(&run(10 * SECOND, 4 * SECOND));
        assert_eq!(progress.describe_time_left(), ", 46 s left");
        // The budget is spent, and the two blocks have 10 trials more, of 4 s each.
        progress.budget_ns = Some(10 * SECOND);
        progress.at_least = 12;
        assert_eq!(progress.describe_time_left(), ", 40 s left");
        // Nothing is left.
        progress.at_least = 2;
        assert_eq!(progress.describe_time_left(), "");
    }

    #[test]
    fn bar_is_full_when_the_sooner_limit_is_reached() {
        // A budget of a minute ends it after 4 of 40 blocks.
        assert_eq!(share(20, 400, 30_000_000_000, Some(60_000_000_000)), 0.5);
        assert_eq!(share(40, 400, 61_000_000_000, Some(60_000_000_000)), 1.0);
        assert_eq!(share(200, 400, 1, Some(60_000_000_000)), 0.5);
        assert_eq!(share(100, 400, 1, None), 0.25);
        assert_eq!(share(0, 0, 0, None), 0.0);
    }
}
