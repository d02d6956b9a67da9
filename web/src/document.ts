// The document's types, made from crates/report/src/page/document by `make types`; a test compares.

export const PAGE_FORMAT_VERSION = 1;

export type Page = { format: number, title: string, 
/**
 * The answer in a few sentences; `None` where nothing is compared.
 */
answer: string | null, facts: Array<Fact>, legend: string, finished: boolean, answered: string, pairs: Array<string>, forest: Array<ForestRow>, why: Array<WhyView>, losses: Array<LossView>, 
/**
 * The tables of RFC 8219 as the program prints them; empty of a study without a goal.
 */
rfc8219: Array<Block>, 
/**
 * Instructions beside time and memory, as the program prints them; empty if none were counted.
 */
instructions: Array<Block>, 
/**
 * The tables of many levels beside one baseline, as the program prints them; empty of a study without any.
 */
levels: Array<Block>, sentences: Array<Sentence>, matrix: Matrix, notes: Array<string>, metrics: Array<MetricView>, factors: Array<FactorView>, cells: Array<CellView>, estimates: Array<EstimateView>, comparisons: Array<ComparisonView>, limits: Array<LimitView>, 
/**
 * Which of them: `headers`, or `airtime`.
 */
limited_by: string, published: Array<PublishedSeries>, runs: RunsView, 
/**
 * What the hosts saw of runs: of all, or of those that there is room for.
 */
details: Array<RunDetail>, testbed: TestbedView, };

export type Fact = { name: string, text: string, };

export type ForestRow = { pair: number, metric: string, transport: string | null, unit: string, 
/**
 * Whether figures are ratios, as per cent more or less: as far down as up on a logarithmic axis.
 */
is_ratio: boolean, higher_is_better: boolean, outcome: Outcome, 
/**
 * How large the difference is beside the margin, as in [`ComparisonView`].
 */
strength: number, words: string, 
/**
 * The difference over all cells, with its 95 % interval, where each cell has one.
 */
whole: Span | null, 
/**
 * The same, rounded, with its unit; above 100 % as a factor.
 */
shown: string, parts: Array<Span>, margin: [number, number], controls: Array<ControlView>, };

export type ControlView = { 
/**
 * `IPv4 vs IPv4`.
 */
arms: string, 
/**
 * Size of its messages, bytes.
 */
size: number, 
/**
 * The difference in a few characters: `+0.1 ± 0.6 %`.
 */
sign: string, 
/**
 * The difference with its 95 % interval, in the unit of the row.
 */
whole: Span | null, 
/**
 * The same, rounded, with its unit.
 */
shown: string, };

export type Span = { middle: number, low: number, high: number, };

export type WhyView = { label: string, arms: [string, string], sentence: string, remarks: Array<string>, 
/**
 * What says whether the samples describe the stack; empty without costs.
 */
health: string, 
/**
 * From the baseline's cost to the candidate's, stage by stage; empty without costs.
 */
waterfall: Array<WaterfallRow>, flame: FlameView | null, 
/**
 * The unit of costs: `ns` or `instructions`.
 */
unit: string, };

export type WaterfallRow = { name: string, is_whole: boolean, 
/**
 * The cost before this step; of a whole, 0.
 */
from: number, to: number, 
/**
 * Half of the step's 95 % interval; of a whole, 0.
 */
half: number, differs: boolean, shown: string, };

export type FlameView = { names: Array<string>, name: Array<number>, depth: Array<number>, 
/**
 * The cost per message in the baseline, with everything that it calls.
 */
baseline: Array<number>, candidate: Array<number>, 
/**
 * How large the difference is among all: -3 to 3, positive where the candidate has more.
 */
tone: Array<number>, };

export type LossView = { 
/**
 * Of a figure: `loss-by-load-udp-64-b`.
 */
name: string, 
/**
 * `loss by load, UDP 64 B`.
 */
title: string, about: string, 
/**
 * The unit of loads.
 */
unit: string, lines: Array<LossLine>, };

export type LossLine = { 
/**
 * The arm.
 */
label: string, 
/**
 * How many slices it had.
 */
counted: string, points: Array<LossPointView>, };

export type LossPointView = { load: number, 
/**
 * Per cent of the messages of a slice, with a 95 % interval.
 */
loss: number, low: number | null, high: number | null, 
/**
 * The same three, rounded.
 */
shown: string, slices: number, };

export type Sentence = { text: string, differs: boolean, comparison: number, pair: number, };

export type Matrix = { 
/**
 * Sizes, bytes.
 */
columns: Array<number>, rows: Array<MatrixRow>, };

export type MatrixRow = { pair: number, label: string, cells: Array<number | null>, 
/**
 * Below the last row of a metric and transport.
 */
controls: Array<ControlView>, };

export type MetricView = { name: string, 
/**
 * What people call it: `sender CPU per message`.
 */
label: string, unit: string, difference_unit: string, higher_is_better: boolean, can_be_negative: boolean, definition: string, probe: string, };

export type FactorView = { name: string, label: string, levels: Array<string>, 
/**
 * The levels as printed below the factor's label: `IPv6`, `1280`.
 */
labels: Array<string>, 
/**
 * The levels as printed alone: `IPv6`, `MTU 1280`.
 */
alone: Array<string>, numbers: Array<number> | null, };

export type CellView = { label: string, levels: Array<number>, };

export type EstimateView = { cell: number, metric: number, n: number, mean: number | null, 
/**
 * Lower end of its 95 % interval.
 */
low: number | null, high: number | null, sd: number | null, median: number | null, missing: string | null, shown: string, };

export type Outcome = "baseline" | "candidate" | "equivalent" | "unseen" | "inconclusive" | "nothing";

export type ComparisonView = { metric: number, factor: number, baseline: number, candidate: number, arms: string, outcome: Outcome, 
/**
 * How large a difference is beside the margin: 1 up to twice, 2 up to five times, 3 more; 0 without a better arm.
 */
strength: number, sign: string, words: string, reason: string | null, difference: number | null, 
/**
 * Lower end of its 95 % interval.
 */
low: number | null, high: number | null, 
/**
 * The same three, rounded; above 100 % as factors.
 */
shown: string, 
/**
 * The margin in the same unit: ends of the differences that count as none.
 */
margin: [number, number], pairs: number, adjusted_p: string | null, headers: string | null, };

export type LimitView = { cell: number, metric: number, value: number, };

export type PublishedSeries = { label: string, metric: number, transport: string | null, 
/**
 * Sizes, bytes, and figures.
 */
points: Array<[number, number]>, };

export type RunsView = { probes: Array<string>, 
/**
 * Block, from 0.
 */
block: Array<number>, position: Array<number>, cell: Array<number>, probe: Array<number>, 
/**
 * Seconds after the campaign's beginning.
 */
started_s: Array<number>, remarks: Array<Remark>, figures: Array<FigureColumn>, };

export type Remark = { 
/**
 * `invalid`, or the code of a warning.
 */
code: string, text: string, runs: Array<number>, };

export type FigureColumn = { metric: number, 
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
position: number, label: string, facts: Array<Fact>, 
/**
 * Milliseconds of traffic before the measured part, which no figure counts.
 */
warmup_ms: number, remarks: Array<string>, figures: Array<Fact>, missing: Array<Fact>, 
/**
 * Why a figure is another one than those of the histograms; none where it is not.
 */
about_figures: string | null, 
/**
 * What each host saw.
 */
ends: Array<EndView>, slices: SlicesView | null, channel: ChannelView | null, };

export type EndView = { role: string, facts: Array<Fact>, series: SeriesView | null, delays: HistogramView | null, cpu: CpuView | null, counters: Array<Fact>, };

export type SlicesView = { what: string, unit: string, arms: Array<ArmSlices>, };

export type ArmSlices = { label: string, 
/**
 * Start of each slice, milliseconds after the trial's first one.
 */
start_ms: Array<number>, figures: Array<number | null>, held_up: Array<boolean>, };

export type ChannelView = { facts: Array<Fact>, lanes: Array<AirLane>, 
/**
 * The end of the last exchange that is shown, milliseconds after the window's beginning.
 */
end_ms: number, };

export type AirLane = { name: string, 
/**
 * The beginning of each, milliseconds after the window's beginning.
 */
begin_ms: Array<number>, end_ms: Array<number>, };

export type SeriesView = { 
/**
 * Start of each row, milliseconds after the first measured arrival.
 */
start_ms: Array<number>, rate: Array<number>, rate_unit: string, delay: Array<number | null>, delay_unit: string, joined: number, };

export type HistogramView = { what: string, unit: string, edges: Array<number>, counts: Array<number>, n: number, percentiles: Array<[string, number]>, mean: number, };

export type CpuView = { scope: string, parts: Array<[string, number]>, busy: number, whole: number, };

export type TestbedView = { sentence: string, rows: Array<DrawingView>, hosts: Array<HostView>, };

export type DrawingView = { hosts: Array<DrawnHost>, links: Array<LinkView>, };

export type DrawnHost = { name: string, 
/**
 * Its system in a few words; empty if no host of that name reported it.
 */
system: string, };

export type LinkView = { mechanisms: Array<string>, facts: Array<string>, };

export type HostView = { name: string, kind: string, system: string, facts: Array<Fact>, abilities: Array<Fact>, };

export type Listing = { folder: string, campaigns: Array<CampaignRow>, unlisted: number, };

export type CampaignRow = { name: string, 
/**
 * Title of the study; of a file that cannot be read, empty.
 */
title: string, started: string, runs: number, running: boolean, 
/**
 * Seconds since it last changed.
 */
changed_s: number, error: string | null, };

export type Headline = { text: string, finished: boolean, };

export type Compared = { headline: string, blocks: Array<Block>, };

export type FleetListing = { 
/**
 * Where the store is, without a password.
 */
place: string, campaigns: Array<FleetRow>, unlisted: number, };

export type FleetRow = { name: string, title: string, 
/**
 * `running`, `ended` or `stopped`.
 */
state: string, pairs: number, progress: string, started: string, };

export type FleetPage = { campaign: FleetRow, 
/**
 * Whether it may soon be another one.
 */
changes: boolean, verdicts: FleetVerdicts, pairs: Array<FleetPairRow>, 
/**
 * Which part it is: `1 to 100 of 400`.
 */
part: string, before: number | null, 
/**
 * How many pairs come before the next part.
 */
after: number | null, failed: number, measured: Array<MeasuredBlock>, 
/**
 * What is known about agents: how many measure, are alive and are lost; empty if nobody follows them.
 */
agents_summary: string, agents: Array<FleetAgent>, unlisted_agents: number, };

export type FleetVerdicts = { answer: string, facts: Array<Fact>, blocks: Array<Block>, 
/**
 * What their words mean; empty without tables.
 */
terms: string, legend: string, columns: Array<string>, };

export type FleetPairRow = { pair: number, name: string, done: number, blocks: number, failure: string | null, 
/**
 * Its verdicts by column; none without a result.
 */
cells: Array<FleetCell>, };

export type FleetCell = { sign: string, outcome: Outcome, 
/**
 * How large a difference is beside the margin, as in `ComparisonView`.
 */
strength: number, words: string, };

export type MeasuredBlock = { pair: number, sender: string, receiver: string, block: number, attempt: number, };

export type FleetAgent = { name: string, 
/**
 * Its labels: `site=north`.
 */
labels: string, is_lost: boolean, 
/**
 * `measures`, `alive`, or for how long it has been lost.
 */
state: string, };

export type Block = { "kind": "title", "content": string } | { "kind": "heading", "content": string } | { "kind": "text", "content": string } | { "kind": "facts", "content": Array<[string, string]> } | { "kind": "list", "content": Array<string> } | { "kind": "table", "content": Table };

export type Table = { 
/**
 * Titles, and whether the column is aligned to the right.
 */
columns: Array<[string, boolean]>, 
/**
 * As many cells in each row as there are columns.
 */
rows: Array<Array<string>>, 
/**
 * Why cells are empty.
 */
footnotes: Footnotes, };

export type Footnotes = Array<string>;

export type Changed = { 
/**
 * Runs in it; of a folder, records.
 */
count: number, 
/**
 * Whether a campaign is writing it now, or any record of the folder.
 */
running: boolean, };

export type Refused = { error: string, };
