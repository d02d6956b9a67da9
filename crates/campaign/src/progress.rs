//! Progress of a campaign, on standard error. On a terminal: a bar, the verdicts so far and a small chart. Elsewhere:
//! one line per block.

use crate::notice::{note, wrap_for_stderr};
use crate::schedule::Schedule;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stacklab_model::{Cell, Factor, Metric, RunRecord, RunStatus, Trial, count, print_duration};
use stacklab_report::{difference, figure_text};
use stacklab_study::Study;
use std::collections::BTreeMap;
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
    /// When the first block began.
    began: Option<Instant>,
    /// Number of runs since the program started, and their total duration in nanoseconds.
    runs: u64,
    measured_ns: u64,
    /// Nanoseconds of the budget that are spent, those of runs from before a resumption too.
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
            spent_ns: 0,
            at_most: 1,
            passed: 0,
            budget_ns: None,
            block: String::new(),
            latest: String::new(),
            verdicts: String::new(),
            chart: None,
            is_by_time,
        }
    }

    /// Shows nothing, as of simulated campaigns.
    pub fn hidden() -> Self {
        let mut progress = Progress::new(true);
        progress.bar = Some(ProgressBar::hidden());
        progress
    }

    pub(crate) fn block(&mut self, study: &Study, schedule: &Schedule<'_>, trials: &[Trial]) {
        self.began.get_or_insert_with(Instant::now);
        let blocks_left = u64::from(study.rule.max - schedule.block);
        self.at_most = self.passed + blocks_left * trials.len() as u64;
        self.budget_ns = study.rule.budget_ns;
        self.block = format!("block {}/{}", schedule.block + 1, study.rule.max);
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
            None => eprintln!(
                "{:>5} s  {}: {}, {settled} of {} settled, the others at the end{}",
                self.started.elapsed().as_secs(),
                self.block,
                count(trials.len(), "trial"),
                count(questions, "comparison"),
                self.verdicts
            ),
        }
    }

    pub(crate) fn trial(&mut self, trial: &Trial) {
        let Some(bar) = &self.bar else { return };
        let left = self.left();
        bar.set_message(format!("{}{left}  now {}", self.block, trial.cell.label()));
    }

    /// Called when a trial's run was already in the record.
    pub(crate) fn kept(&mut self, run: &RunRecord) {
        self.spent_ns = self.spent_ns.saturating_add(run.wall_ns);
        self.pass();
        if let Some(chart) = &mut self.chart {
            chart.add(run);
        }
    }

    pub(crate) fn done(&mut self, run: &RunRecord) {
        self.runs += 1;
        self.measured_ns = self.measured_ns.saturating_add(run.wall_ns);
        self.spent_ns = self.spent_ns.saturating_add(run.wall_ns);
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
                (PARTS * share(self.passed, self.at_most, self.spent_ns, self.budget_ns)) as u64,
            );
        }
    }

    /// `, 12 s left`, at most, estimated from the runs so far; empty before the first run.
    fn left(&self) -> String {
        let Some(each_ns) = self.measured_ns.checked_div(self.runs) else { return String::new() };
        let by_count = each_ns.saturating_mul(self.at_most - self.passed.min(self.at_most));
        let of_runs =
            self.budget_ns.map_or(by_count, |budget| by_count.min(budget.saturating_sub(self.spent_ns)));
        let elapsed_ns = self.began.map_or(0, |began| began.elapsed().as_nanos() as u64);
        let ns = add_preparation(of_runs, self.measured_ns, elapsed_ns);
        format!(", {} left", print_duration(ns.div_ceil(1_000_000_000) * 1_000_000_000))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// How long runs of `left_ns` take with what is prepared between them, as long as it took so far: runs of `measured_ns`
/// took `elapsed_ns`. A budget counts runs only.
fn add_preparation(left_ns: u64, measured_ns: u64, elapsed_ns: u64) -> u64 {
    if elapsed_ns <= measured_ns || measured_ns == 0 {
        return left_ns;
    }
    (left_ns as f64 * (elapsed_ns as f64 / measured_ns as f64)) as u64
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Maximum number of lines: a chart that does not fit its terminal shows nothing.
const LINES: usize = 6;

/// A small chart of the results so far: means of one metric by size, a line for each combination of the other factors.
struct LiveChart {
    /// The factors that name a line, as printed: transport and family first, since most studies vary them.
    factors: Vec<Factor>,
    metric: Metric,
    lines: BTreeMap<String, BTreeMap<u32, (f64, u32)>>,
}

impl LiveChart {
    fn new(cells: &[Cell], metric: Metric) -> Self {
        let mut factors = vec![Factor::Transport, Factor::Family];
        factors.extend(Factor::ALL.iter().filter(|factor| {
            !matches!(factor, Factor::Transport | Factor::Family | Factor::Size)
                && cells.iter().any(|cell| cell.level(**factor) != cells[0].level(**factor))
        }));
        LiveChart { factors, metric, lines: BTreeMap::new() }
    }

    fn add(&mut self, run: &RunRecord) {
        let figure = run.values.get(&self.metric).and_then(|value| value.measured());
        let Some(figure) = figure.filter(|_| run.is_valid()) else { return };
        let cell = &run.trial.cell;
        let line = self.line(cell);
        let (sum, n) = self.lines.entry(line).or_default().entry(cell.size).or_default();
        (*sum, *n) = (*sum + figure, *n + 1);
    }

    /// `TCP IPv4 gvisor`.
    fn line(&self, cell: &Cell) -> String {
        let levels = self.factors.iter().map(|factor| factor.level_label(&cell.level(*factor)));
        levels.filter(|level| !level.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The lines: `throughput  TCP IPv4  ▁▃▅█  12.3 to 92.8 Mbit/s at 128 to 1408 B`, all bars on one scale from zero.
    fn draw(&self) -> String {
        let mean = |(sum, n): &(f64, u32)| sum / f64::from((*n).max(1));
        let most = self.lines.values().flat_map(BTreeMap::values).map(mean).fold(0.0, f64::max);
        let widest = self.lines.keys().map(|line| line.chars().count()).max().unwrap_or(0);
        let draw = |(name, sizes): (&String, &BTreeMap<u32, (f64, u32)>)| {
            let means: Vec<f64> = sizes.values().map(mean).collect();
            let bars: String = means.iter().map(|mean| bar(*mean, most)).collect();
            let (low, high) = means.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), m| (l.min(*m), h.max(*m)));
            let [low, high] = [low, high].map(|figure| figure_text(self.metric, figure));
            let range = if low == high { low } else { format!("{low} to {high}") };
            let sizes = match (sizes.keys().min(), sizes.keys().max()) {
                (Some(small), Some(large)) if small < large => format!(" at {small} to {large} B"),
                _ => String::new(),
            };
            format!("{}  {name:<widest$}  {bars}  {range}{sizes}", self.metric.label())
        };
        let mut drawn: Vec<String> = self.lines.iter().take(LINES).map(draw).collect();
        if self.lines.len() > LINES {
            drawn.push(format!("and {} more", self.lines.len() - LINES));
        }
        drawn.join("\n")
    }
}

fn bar(figure: f64, most: f64) -> char {
    let share = if most > 0.0 { (figure / most).clamp(0.0, 1.0) } else { 0.0 };
    BARS[(share * (BARS.len() - 1) as f64).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Family, Probe, SizeOf, Transport, Value};

    #[test]
    fn bars_stand_on_one_scale_from_zero() {
        assert_eq!([0.0, 50.0, 100.0].map(|figure| bar(figure, 100.0)), ['▁', '▅', '█']);
        assert_eq!(bar(0.0, 0.0), '▁');
        assert_eq!(bar(f64::NAN, 100.0), '▁');
    }

    fn cell(transport: Transport, family: Family, os: &str) -> Cell {
        let mut cell = Cell::new(family, transport, SizeOf::Payload, 128);
        cell.set(Factor::Os, os).unwrap();
        cell
    }

    #[test]
    fn differing_cells_have_lines_and_omissions_are_told() {
        let cells: Vec<Cell> = ["namespace", "gvisor"]
            .into_iter()
            .flat_map(|os| [Family::Ipv4, Family::Ipv6].map(|family| (os, family)))
            .flat_map(|(os, family)| [Transport::Tcp, Transport::Udp].map(|of| cell(of, family, os)))
            .collect();
        let mut chart = LiveChart::new(&cells, Metric::Throughput);
        let lines: Vec<String> = cells.iter().map(|cell| chart.line(cell)).collect();
        assert_eq!(lines[..2], ["TCP IPv4 namespace", "UDP IPv4 namespace"]);
        chart.lines = lines.into_iter().map(|line| (line, [(128, (10.0, 1))].into())).collect();
        // Eight lines, but the terminal has room for six.
        let drawn = chart.draw();
        assert_eq!((chart.lines.len(), drawn.lines().count()), (8, 7), "{drawn}");
        assert!(drawn.ends_with("\nand 2 more"), "{drawn}");
        // A factor with one level is not part of a line's name.
        let alike = LiveChart::new(&cells[..4], Metric::Throughput);
        assert_eq!(alike.line(&cells[0]), "TCP IPv4");
    }

    #[test]
    fn each_arm_has_a_line_with_its_range() {
        let mut chart = LiveChart::new(&[], Metric::Throughput);
        assert_eq!(chart.draw(), "");
        for (name, sizes) in
            [("TCP IPv4", [(128, 20.0), (1408, 80.0)]), ("TCP IPv6", [(128, 10.0), (1408, 70.0)])]
        {
            let means = sizes.into_iter().map(|(size, mean)| (size, (2.0 * mean, 2))).collect();
            chart.lines.insert(name.to_owned(), means);
        }
        assert_eq!(
            chart.draw(),
            "throughput  TCP IPv4  ▃█  20.0 Mbit/s to 80.0 Mbit/s at 128 to 1408 B\n\
             throughput  TCP IPv6  ▂▇  10.0 Mbit/s to 70.0 Mbit/s at 128 to 1408 B"
        );
    }

    #[test]
    fn time_left_has_preparation_in_it() {
        const SECOND: u64 = 1_000_000_000;
        // A minute of runs took 90 s: half a minute more takes 45 s.
        assert_eq!(add_preparation(30 * SECOND, 60 * SECOND, 90 * SECOND), 45 * SECOND);
        assert_eq!(add_preparation(30 * SECOND, 60 * SECOND, 59 * SECOND), 30 * SECOND);
        assert_eq!(add_preparation(30 * SECOND, 0, 5 * SECOND), 30 * SECOND);
    }

    #[test]
    fn runs_before_a_resumption_spend_the_budget() {
        let run = |wall_ns| {
            let trial = Trial {
                block: 0,
                position: 0,
                cell: cell(Transport::Udp, Family::Ipv4, "namespace"),
                probe: Probe::Stream,
            };
            RunRecord { wall_ns, ..RunRecord::with_value(trial, Metric::Throughput, Value::Measured(1.0)) }
        };
        let mut progress = Progress::hidden();
        (progress.at_most, progress.budget_ns) = (1000, Some(60_000_000_000));
        progress.kept(&run(40_000_000_000));
        assert_eq!(progress.left(), "", "nothing was measured yet");
        progress.done(&run(5_000_000_000));
        assert_eq!(progress.left(), ", 15 s left");
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
