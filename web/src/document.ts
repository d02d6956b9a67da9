// The document's types, made from crates/report/src/page/document by `make types`; a test compares.

export const PAGE_FORMAT_VERSION = 1;

export type Page = { 
/**
 * [`PAGE_FORMAT_VERSION`].
 */
format: number, 
/**
 * Title of the study.
 */
title: string, 
/**
 * The answer in a few sentences; `None` where nothing is compared.
 */
answer: string | null, 
/**
 * What was measured, when, where and how often.
 */
facts: Array<Fact>, 
/**
 * What intervals and verdicts mean.
 */
legend: string, 
/**
 * Whether every comparison was measured until the stopping rule was content.
 */
finished: boolean, 
/**
 * How many comparisons have an answer.
 */
answered: string, 
/**
 * What is compared: `IPv6 vs IPv4`.
 */
pairs: Array<string>, 
/**
 * Each difference over all cells, as a forest plot.
 */
forest: Array<ForestRow>, 
/**
 * Why arms differ, where that was asked.
 */
why: Array<WhyView>, 
/**
 * A sentence for each group of comparisons.
 */
sentences: Array<Sentence>, 
/**
 * All verdicts at a glance.
 */
matrix: Matrix, 
/**
 * What a reader should know besides.
 */
notes: Array<string>, 
/**
 * The metrics that the study takes.
 */
metrics: Array<MetricView>, 
/**
 * The factors that tell cells apart, transport first.
 */
factors: Array<FactorView>, 
/**
 * The cells of the study.
 */
cells: Array<CellView>, 
/**
 * Every cell and metric.
 */
estimates: Array<EstimateView>, 
/**
 * Every comparison.
 */
comparisons: Array<ComparisonView>, 
/**
 * What the testbed carries at most, by the model of headers or airtime.
 */
limits: Array<LimitView>, 
/**
 * Which of them: `headers`, or `airtime`.
 */
limited_by: string, 
/**
 * Figures of the published study that this one repeats.
 */
published: Array<PublishedSeries>, 
/**
 * Every run.
 */
runs: RunsView, 
/**
 * What the hosts saw of runs: of all, or of those that there is room for.
 */
details: Array<RunDetail>, 
/**
 * The testbed.
 */
testbed: TestbedView, };

export type Fact = { 
/**
 * The name.
 */
name: string, 
/**
 * The text.
 */
text: string, };

export type ForestRow = { 
/**
 * The pair that is compared.
 */
pair: number, 
/**
 * The metric.
 */
metric: string, 
/**
 * The transport if it is not what differs.
 */
transport: string | null, 
/**
 * Unit of all figures of the row.
 */
unit: string, 
/**
 * Whether figures are ratios, as per cent more or less: as far down as up on a logarithmic axis.
 */
is_ratio: boolean, 
/**
 * Whether the metric is better where it is higher.
 */
higher_is_better: boolean, 
/**
 * The answer over all cells.
 */
outcome: Outcome, 
/**
 * How large the difference is beside the margin, as in [`ComparisonView`].
 */
strength: number, 
/**
 * The answer in words.
 */
words: string, 
/**
 * The difference over all cells, with its 95 % interval, where each cell has one.
 */
whole: Span | null, 
/**
 * The same, rounded, with its unit; above 100 % as a factor.
 */
shown: string, 
/**
 * The difference in each cell.
 */
parts: Array<Span>, 
/**
 * The margin: ends of the differences that count as none.
 */
margin: [number, number], };

export type Span = { 
/**
 * The estimate.
 */
middle: number, 
/**
 * Lower end.
 */
low: number, 
/**
 * Upper end.
 */
high: number, };

export type WhyView = { 
/**
 * What both cells have in common.
 */
label: string, 
/**
 * The levels that differ: baseline, candidate.
 */
arms: [string, string], 
/**
 * The answer, or the reason why there is none.
 */
sentence: string, 
/**
 * What speaks against the figures, and what is left out.
 */
remarks: Array<string>, 
/**
 * What says whether the samples describe the stack; empty without costs.
 */
health: string, 
/**
 * From the baseline's cost to the candidate's, stage by stage; empty without costs.
 */
waterfall: Array<WaterfallRow>, 
/**
 * The call chains of both arms.
 */
flame: FlameView | null, };

export type WaterfallRow = { 
/**
 * The stage, or the arm.
 */
name: string, 
/**
 * Whether it is the whole cost of an arm.
 */
is_whole: boolean, 
/**
 * The cost before this step; of a whole, 0.
 */
from: number, 
/**
 * The cost after it.
 */
to: number, 
/**
 * Half of the step's 95 % interval; of a whole, 0.
 */
half: number, 
/**
 * Whether the arms differ here, with all stages taken into account.
 */
differs: boolean, 
/**
 * The figure as printed.
 */
shown: string, };

export type FlameView = { 
/**
 * Names of functions.
 */
names: Array<string>, 
/**
 * Each function's name.
 */
name: Array<number>, 
/**
 * How many functions called it, one another.
 */
depth: Array<number>, 
/**
 * Nanoseconds a message in the baseline, with all that it calls.
 */
baseline: Array<number>, 
/**
 * The same in the candidate.
 */
candidate: Array<number>, 
/**
 * How large the difference is among all: -3 to 3, positive where the candidate has more.
 */
tone: Array<number>, };

export type Sentence = { 
/**
 * The sentence.
 */
text: string, 
/**
 * Whether any comparison of it has a better arm.
 */
differs: boolean, 
/**
 * The comparison that stands for the group.
 */
comparison: number, 
/**
 * The pair that is compared.
 */
pair: number, };

export type Matrix = { 
/**
 * Sizes, bytes.
 */
columns: Array<number>, 
/**
 * Everything else.
 */
rows: Array<MatrixRow>, };

export type MatrixRow = { 
/**
 * The pair that is compared.
 */
pair: number, 
/**
 * By what, and where.
 */
label: string, 
/**
 * The comparison at each size.
 */
cells: Array<number | null>, };

export type MetricView = { 
/**
 * Its key.
 */
name: string, 
/**
 * What people call it: `sender CPU per message`.
 */
label: string, 
/**
 * Unit of all its figures in the document.
 */
unit: string, 
/**
 * Unit of differences.
 */
difference_unit: string, 
/**
 * Whether more is better.
 */
higher_is_better: boolean, 
/**
 * Whether figures below zero mean something: axes of others begin at zero or above.
 */
can_be_negative: boolean, 
/**
 * What it is, with unit and direction.
 */
definition: string, 
/**
 * The probe that takes it.
 */
probe: string, };

export type FactorView = { 
/**
 * Its key.
 */
name: string, 
/**
 * What people call it: `receive buffer`.
 */
label: string, 
/**
 * Its levels, as written in study files, in order.
 */
levels: Array<string>, 
/**
 * The levels as printed below the factor's label: `IPv6`, `1280`.
 */
labels: Array<string>, 
/**
 * The levels as printed alone: `IPv6`, `MTU 1280`.
 */
alone: Array<string>, 
/**
 * The levels as numbers, where all are.
 */
numbers: Array<number> | null, };

export type CellView = { 
/**
 * The cell in words.
 */
label: string, 
/**
 * Its level of each factor.
 */
levels: Array<number>, };

export type EstimateView = { 
/**
 * The cell.
 */
cell: number, 
/**
 * The metric.
 */
metric: number, 
/**
 * Valid runs with a figure.
 */
n: number, 
/**
 * Mean over runs.
 */
mean: number | null, 
/**
 * Lower end of its 95 % interval.
 */
low: number | null, 
/**
 * Upper end of its 95 % interval.
 */
high: number | null, 
/**
 * Standard deviation over runs.
 */
sd: number | null, 
/**
 * Median over runs.
 */
median: number | null, 
/**
 * Why runs have no figure, where any has none.
 */
missing: string | null, 
/**
 * Mean and half the interval, rounded alike for the metric and transport.
 */
shown: string, };

export type Outcome = "baseline" | "candidate" | "equivalent" | "unseen" | "inconclusive" | "nothing";

export type ComparisonView = { 
/**
 * The metric.
 */
metric: number, 
/**
 * What is compared.
 */
factor: number, 
/**
 * The cell compared with.
 */
baseline: number, 
/**
 * The cell compared.
 */
candidate: number, 
/**
 * `IPv6 vs IPv4`.
 */
arms: string, 
/**
 * The answer.
 */
outcome: Outcome, 
/**
 * How large a difference is beside the margin: 1 up to twice, 2 up to five times, 3 more; 0 without a better arm.
 */
strength: number, 
/**
 * The answer in a few characters: `IPv4 9.8%`, `=`, `?`.
 */
sign: string, 
/**
 * The answer in words, with why no more was measured where that was not the interval's doing.
 */
words: string, 
/**
 * Why there is nothing to compare.
 */
reason: string | null, 
/**
 * How far the candidate is from the baseline, in the metric's difference unit.
 */
difference: number | null, 
/**
 * Lower end of its 95 % interval.
 */
low: number | null, 
/**
 * Upper end of its 95 % interval.
 */
high: number | null, 
/**
 * The same three, rounded; above 100 % as factors.
 */
shown: string, 
/**
 * The margin in the same unit: ends of the differences that count as none.
 */
margin: [number, number], 
/**
 * Blocks in which both arms have a figure.
 */
pairs: number, 
/**
 * Two-sided p of no difference, adjusted for the number of comparisons, as reports write it.
 */
adjusted_p: string | null, 
/**
 * What headers explain, and what they leave.
 */
headers: string | null, };

export type LimitView = { 
/**
 * The cell.
 */
cell: number, 
/**
 * The metric.
 */
metric: number, 
/**
 * The figure.
 */
value: number, };

export type PublishedSeries = { 
/**
 * Systems and place in the publication.
 */
label: string, 
/**
 * The metric.
 */
metric: number, 
/**
 * The transport's level, where the figures are of one.
 */
transport: string | null, 
/**
 * Sizes, bytes, and figures.
 */
points: Array<[number, number]>, };

export type RunsView = { 
/**
 * Names of the probes.
 */
probes: Array<string>, 
/**
 * Block, from 0.
 */
block: Array<number>, 
/**
 * Place in the block.
 */
position: Array<number>, 
/**
 * The cell.
 */
cell: Array<number>, 
/**
 * The probe.
 */
probe: Array<number>, 
/**
 * Seconds after the campaign's beginning.
 */
started_s: Array<number>, 
/**
 * Invalid runs with the reason, and runs with warnings.
 */
remarks: Array<Remark>, 
/**
 * A column for each metric.
 */
figures: Array<FigureColumn>, };

export type Remark = { 
/**
 * `invalid`, or the code of a warning.
 */
code: string, 
/**
 * The text.
 */
text: string, 
/**
 * The runs.
 */
runs: Array<number>, };

export type FigureColumn = { 
/**
 * The metric.
 */
metric: number, 
/**
 * A figure for each run of the metric's probe, in the order of runs; none where it is missing or not valid.
 */
values: Array<number | null>, };

export type RunDetail = { 
/**
 * Block, from 0.
 */
block: number, 
/**
 * Place in the block.
 */
position: number, 
/**
 * The run in words.
 */
label: string, 
/**
 * How it was run, whether it counts, and how long it took.
 */
facts: Array<Fact>, 
/**
 * Milliseconds of traffic before the measured part, which no figure counts.
 */
warmup_ms: number, 
/**
 * What is to be said of it.
 */
remarks: Array<string>, 
/**
 * Its figures.
 */
figures: Array<Fact>, 
/**
 * Why there is no figure of other metrics.
 */
missing: Array<Fact>, 
/**
 * Why a figure is another one than those of the histograms; none where it is not.
 */
about_figures: string | null, 
/**
 * What each host saw.
 */
sides: Array<SideView>, 
/**
 * The slices of all arms of its trial; none if it was measured by itself.
 */
slices: SlicesView | null, 
/**
 * The use of the radio channel; none if there is none.
 */
channel: ChannelView | null, };

export type SideView = { 
/**
 * Its part.
 */
role: string, 
/**
 * Socket, messages and options.
 */
facts: Array<Fact>, 
/**
 * Interval series.
 */
series: SeriesView | null, 
/**
 * Histogram of delays.
 */
delays: HistogramView | null, 
/**
 * Shares of the host's CPU time.
 */
cpu: CpuView | null, 
/**
 * Counters that moved.
 */
counters: Array<Fact>, };

export type SlicesView = { 
/**
 * What a figure is.
 */
what: string, 
/**
 * Its unit.
 */
unit: string, 
/**
 * Each arm, in the order of the block.
 */
arms: Array<ArmSlices>, };

export type ArmSlices = { 
/**
 * The arm's cell.
 */
label: string, 
/**
 * Start of each slice, milliseconds after the trial's first one.
 */
start_ms: Array<number>, 
/**
 * The slice's figure; none where nothing came.
 */
figures: Array<number | null>, 
/**
 * Whether the slice waited for a processor for long, at either host.
 */
held_up: Array<boolean>, };

export type ChannelView = { 
/**
 * Where the time went, and what each node had of it.
 */
facts: Array<Fact>, 
/**
 * Who had the channel: each node, then collisions.
 */
lanes: Array<AirLane>, 
/**
 * The end of the last exchange that is shown, milliseconds after the window's beginning.
 */
end_ms: number, };

export type AirLane = { 
/**
 * Whose.
 */
name: string, 
/**
 * The beginning of each, milliseconds after the window's beginning.
 */
begin_ms: Array<number>, 
/**
 * The end of each, after the response.
 */
end_ms: Array<number>, };

export type SeriesView = { 
/**
 * Start of each row, milliseconds after the first measured arrival.
 */
start_ms: Array<number>, 
/**
 * Payload.
 */
rate: Array<number>, 
/**
 * Unit of the rates.
 */
rate_unit: string, 
/**
 * Mean delay.
 */
delay: Array<number | null>, 
/**
 * Unit of the delays.
 */
delay_unit: string, 
/**
 * Rows of the record in one row here.
 */
joined: number, };

export type HistogramView = { 
/**
 * What the delays are.
 */
what: string, 
/**
 * Unit of all delays.
 */
unit: string, 
/**
 * Lower end of each bar, and the upper end of the last one.
 */
edges: Array<number>, 
/**
 * How many delays are in each.
 */
counts: Array<number>, 
/**
 * How many there are in all.
 */
n: number, 
/**
 * Percentiles of the record's own buckets, by name.
 */
percentiles: Array<[string, number]>, 
/**
 * Exact mean.
 */
mean: number, };

export type CpuView = { 
/**
 * Whose CPU.
 */
scope: string, 
/**
 * Name and per cent of one core, busy parts first, idle last.
 */
parts: Array<[string, number]>, 
/**
 * Busy in all, per cent of one core.
 */
busy: number, 
/**
 * All parts together, per cent of one core.
 */
whole: number, };

export type TestbedView = { 
/**
 * In a sentence.
 */
sentence: string, 
/**
 * How hosts are joined: one row for all that are joined alike.
 */
rows: Array<DrawingView>, 
/**
 * The hosts, in the order in which they were asked.
 */
hosts: Array<HostView>, };

export type DrawingView = { 
/**
 * The hosts.
 */
hosts: Array<DrawnHost>, 
/**
 * The link after each host but the last.
 */
links: Array<LinkView>, };

export type DrawnHost = { 
/**
 * Its name.
 */
name: string, 
/**
 * Its system in a few words; empty if no host of that name reported it.
 */
system: string, };

export type LinkView = { 
/**
 * How packets cross it, one after another, where the study varies that.
 */
mechanisms: Array<string>, 
/**
 * What is known of it.
 */
facts: Array<string>, };

export type HostView = { 
/**
 * Its name.
 */
name: string, 
/**
 * Where it is: the kind of host, and with routers the mechanism.
 */
kind: string, 
/**
 * Its system in a few words.
 */
system: string, 
/**
 * Its facts.
 */
facts: Array<Fact>, 
/**
 * What it can do.
 */
abilities: Array<Fact>, };

export type Listing = { 
/**
 * The folder as it was named.
 */
folder: string, 
/**
 * Its records, the last changed first.
 */
campaigns: Array<CampaignRow>, 
/**
 * How many more there are than are listed.
 */
unlisted: number, };

export type CampaignRow = { 
/**
 * The file's name.
 */
name: string, 
/**
 * Title of the study; of a file that cannot be read, empty.
 */
title: string, 
/**
 * When it began.
 */
started: string, 
/**
 * Runs in it.
 */
runs: number, 
/**
 * Whether a campaign is writing it now.
 */
running: boolean, 
/**
 * Seconds since it last changed.
 */
changed_s: number, 
/**
 * Why it cannot be read.
 */
error: string | null, };

export type Headline = { 
/**
 * The answer; empty where nothing is compared.
 */
text: string, 
/**
 * Whether every comparison was measured until the stopping rule was content.
 */
finished: boolean, };

export type Compared = { 
/**
 * How many figures of B are better, worse, and alike.
 */
headline: string, 
/**
 * The parts of the report, in order.
 */
blocks: Array<BlockView>, };

export type BlockView = { "kind": "title", 
/**
 * Its text.
 */
text: string, } | { "kind": "heading", 
/**
 * Its text.
 */
text: string, } | { "kind": "prose", 
/**
 * Its text.
 */
text: string, } | { "kind": "facts", 
/**
 * The facts.
 */
facts: Array<Fact>, } | { "kind": "list", 
/**
 * Its points.
 */
points: Array<string>, } | { "kind": "table", 
/**
 * Titles of its columns.
 */
columns: Array<string>, 
/**
 * Whether each column is of figures.
 */
figures: Array<boolean>, 
/**
 * Its cells.
 */
rows: Array<Array<string>>, 
/**
 * Its footnotes, from 1.
 */
notes: Array<string>, };

export type Changed = { 
/**
 * Runs in it; of a folder, records.
 */
count: number, 
/**
 * Whether a campaign is writing it now, or any record of the folder.
 */
running: boolean, };

export type Refused = { 
/**
 * The reason.
 */
error: string, };
