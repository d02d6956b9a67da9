// From the document and the URL to the lines that are shown. Figures are taken as they are.
import type { ComparisonView, EstimateView, FactorView, MetricView, Page, PublishedSeries } from "../document";
import type { State } from "../state";

export const ALL = "all";

export interface Point {
  /** Place of its level on the axis. */
  x: number;
  estimate: EstimateView;
  /** What the link carries at most. */
  limit: number | undefined;
  /** Figures of single runs. */
  runs: readonly number[];
}

export interface Line {
  label: string;
  /** The same for files: `ipv6`, or `family=ipv6 mtu=1280`. */
  key: string;
  points: readonly Point[];
  /** Number of its colour and marker; undefined where it is drawn in grey. */
  look: number | undefined;
}

/** Maximum number of distinguishable lines in one graph; others are grey until they are chosen. */
export const LIT = 6;

export interface Row {
  label: string;
  cells: readonly (EstimateView | undefined)[];
  comparisons: readonly ComparisonView[];
}

export interface Overlay {
  label: string;
  points: readonly (readonly [number, number])[];
}

export interface Shown {
  metric: MetricView;
  /** What is across. */
  axis: FactorView;
  /** Whether the axis is one of numbers. */
  numeric: boolean;
  /** The factors that can be chosen, with the level chosen, by number, or undefined for all. */
  choices: readonly { factor: FactorView; chosen: number | undefined }[];
  lines: readonly Line[];
  rows: readonly Row[];
  /** Comparisons of what is across, which are of two rows. */
  between: readonly ComparisonView[];
  overlays: readonly Overlay[];
  /** The model that limits are of. */
  limitedBy: string;
  /** `TCP, MTU 1280`: what all lines have in common. */
  common: string;
}

export function number<T>(names: readonly T[], name: T | undefined): number | undefined {
  const place = name === undefined ? -1 : names.indexOf(name);
  return place < 0 ? undefined : place;
}

/** The factors of more than one level: there is nothing to choose of others. */
function varied(page: Page): number[] {
  return page.factors.flatMap((factor, place) => (factor.levels.length > 1 ? [place] : []));
}

/** What is across: what the URL names, else size, else the first factor that has several levels. */
export function axisOf(page: Page, state: State): number {
  const several = varied(page);
  const named = page.factors.findIndex((factor) => factor.name === state["x"]);
  if (several.includes(named)) return named;
  const size = page.factors.findIndex((factor) => factor.name === "size");
  return several.includes(size) ? size : (several[0] ?? size);
}

/** The factor that arms are compared by. */
function compared(page: Page): number | undefined {
  return page.comparisons[0]?.factor;
}

/**
 * The level of a factor that is shown: what the URL names; else of the transport the first that has figures, for
 * transports are another question each; of others all, while there are few lines.
 */
function choice(page: Page, state: State, factor: number, metric: number): number | undefined {
  const { name, levels } = page.factors[factor]!;
  const named = state["f." + name];
  if (named === ALL) return undefined;
  const chosen = number(levels, named);
  if (chosen !== undefined) return chosen;
  if (factor === compared(page)) return undefined;
  const present = new Set(
    page.estimates.filter((e) => e.metric === metric && e.n > 0).map((e) => page.cells[e.cell]!.levels[factor]!),
  );
  const first = [...present].sort((a, b) => a - b)[0];
  if (name === "transport" || name === "size_of") return first ?? 0;
  return levels.length > 4 ? (first ?? 0) : undefined;
}

export function metricOf(page: Page, state: State): number {
  return page.metrics.findIndex((metric) => metric.name === state["metric"]) >= 0
    ? page.metrics.findIndex((metric) => metric.name === state["metric"])
    : 0;
}

export function select(page: Page, state: State): Shown | undefined {
  const metricNumber = metricOf(page, state);
  const metric = page.metrics[metricNumber];
  const axisNumber = axisOf(page, state);
  const axis = page.factors[axisNumber];
  if (metric === undefined || axis === undefined) return undefined;
  const chooseable = varied(page).filter((factor) => factor !== axisNumber);
  const chosen = new Map(chooseable.map((factor) => [factor, choice(page, state, factor, metricNumber)]));
  const apart = chooseable.filter((factor) => chosen.get(factor) === undefined);

  const matches = (levels: readonly number[]) =>
    chooseable.every((factor) => chosen.get(factor) === undefined || chosen.get(factor) === levels[factor]);
  const keyOf = (levels: readonly number[]) => apart.map((factor) => levels[factor]).join(".");
  const labelOf = (levels: readonly number[]) => settings(page, levels, apart) || (apart.length > 0 ? "as it is" : "all runs");

  const limits = new Map(
    page.limits.filter((limit) => limit.metric === metricNumber).map((limit) => [limit.cell, limit.value]),
  );
  const runs = runsByCell(page, metricNumber);
  const lines = new Map<string, { label: string; key: string; order: readonly number[]; points: Point[] }>();
  for (const estimate of page.estimates) {
    const levels = page.cells[estimate.cell]!.levels;
    if (estimate.metric !== metricNumber || !matches(levels)) continue;
    const key = keyOf(levels);
    const order = apart.map((factor) => levels[factor]!);
    const line = lines.get(key) ?? { label: labelOf(levels), key: keyed(page, levels, apart), order, points: [] };
    lines.set(key, line);
    line.points.push({
      x: levels[axisNumber]!,
      estimate,
      limit: limits.get(estimate.cell),
      runs: runs.get(estimate.cell) ?? [],
    });
  }
  const ordered = [...lines.values()].sort((a, b) => compare(a.order, b.order));
  for (const line of ordered) line.points.sort((a, b) => a.x - b.x);
  const baselines = page.comparisons.filter((c) => c.metric === metricNumber).map((c) => keyOf(page.cells[c.baseline]!.levels));
  const lit = litLines(ordered.map(({ order }) => baselines.filter((key) => key === order.join(".")).length), state["lit"]);
  const sorted: Line[] = ordered.map(({ label, key, points }, place) => ({ label, key, points, look: number(lit, place) }));

  const here = page.comparisons.filter(
    (c) => c.metric === metricNumber && matches(page.cells[c.baseline]!.levels) && matches(page.cells[c.candidate]!.levels),
  );
  const rows = axis.levels.flatMap((_, level) => {
    const cells = sorted.map((line) => line.points.find((point) => point.x === level)?.estimate);
    if (cells.every((cell) => cell === undefined)) return [];
    const comparisons = here.filter((c) => c.factor !== axisNumber && page.cells[c.baseline]!.levels[axisNumber] === level);
    return [{ label: axis.labels[level]!, cells, comparisons }];
  });

  const transport = page.factors.findIndex((factor) => factor.name === "transport");
  const only = page.factors[transport]!.levels.length === 1 ? 0 : chosen.get(transport);
  const transportName = only === undefined ? undefined : page.factors[transport]!.levels[only];
  const overlays =
    axis.name === "size"
      ? named(
          page.factors[transport]!,
          page.published.filter(
            (series) =>
              series.metric === metricNumber &&
              (series.transport === null || transportName === undefined || series.transport === transportName),
          ),
        )
      : [];
  const common = page.factors
    .filter((factor, place) => place !== axisNumber && !isPayload(factor) && (factor.levels.length === 1 || chosen.get(place) !== undefined))
    .map((factor) => factor.alone[chosen.get(page.factors.indexOf(factor)) ?? 0])
    .join(", ");
  return {
    metric,
    axis,
    numeric: axis.numbers !== null,
    choices: chooseable.map((factor) => ({ factor: page.factors[factor]!, chosen: chosen.get(factor) })),
    lines: sorted,
    rows,
    between: here.filter((c) => c.factor === axisNumber),
    overlays,
    limitedBy: page.limited_by,
    common,
  };
}

/**
 * The lines in colour, by number: all while they are few, else those that the URL names, else the ones that most others
 * are compared with and then the first.
 */
export function litLines(compared: readonly number[], named: string | undefined): number[] {
  const all = compared.map((_, place) => place);
  if (all.length <= LIT) return all;
  const chosen = named?.split(".").map(Number).filter((place) => place in compared);
  if (chosen?.length) return chosen.slice(-LIT);
  return all.sort((a, b) => compared[b]! - compared[a]! || a - b).slice(0, LIT);
}

/** Whether arms are too many for columns, or a level has too many comparisons for one cell. */
export function isWide(shown: Shown): boolean {
  return shown.lines.length > 3 || shown.rows.some((row) => row.comparisons.length > 2);
}

/** Sizes are of payloads unless it is said. */
function isPayload({ name, levels }: FactorView): boolean {
  return name === "size_of" && levels.join() === "payload";
}

/** Published series, each with its transport where another has the same label. */
function named({ levels, alone }: FactorView, published: readonly PublishedSeries[]): Overlay[] {
  return published.map((series) => {
    const alike = published.filter(({ label }) => label === series.label).length > 1;
    const transport = series.transport === null ? "any transport" : (alone[levels.indexOf(series.transport)] ?? series.transport);
    return { label: alike ? `${series.label}, ${transport}` : series.label, points: series.points };
  });
}

/** The levels of some factors in words, without those that a cell leaves as they are. */
export function settings(page: Page, levels: readonly number[], factors: readonly number[]): string {
  const set = factors.filter((factor) => page.factors[factor]!.levels[levels[factor]!] !== "");
  return set.map((factor) => page.factors[factor]!.alone[levels[factor]!]!).join(", ");
}

function keyed(page: Page, levels: readonly number[], factors: readonly number[]): string {
  const keys = factors.map((factor) => [page.factors[factor]!.name, page.factors[factor]!.levels[levels[factor]!]!] as const);
  return keys.length === 1 ? keys[0]![1] : keys.map(([name, level]) => `${name}=${level}`).join(" ");
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (let place = 0; place < a.length; place++) {
    const apart = a[place]! - b[place]!;
    if (apart !== 0) return apart;
  }
  return 0;
}

/** The figures of single runs by their cell. */
function runsByCell(page: Page, metric: number): Map<number, number[]> {
  const column = page.runs.figures.find((figures) => figures.metric === metric);
  const probe = page.runs.probes.indexOf(page.metrics[metric]!.probe);
  const found = new Map<number, number[]>();
  let place = 0;
  page.runs.cell.forEach((cell, run) => {
    if (page.runs.probe[run] !== probe) return;
    const figure = column?.values[place++];
    if (figure === null || figure === undefined) return;
    const figures = found.get(cell) ?? [];
    found.set(cell, figures);
    figures.push(figure);
  });
  return found;
}

/** The state that shows a comparison in the explorer. */
export function stateFor(page: Page, comparison: ComparisonView): Record<string, string> {
  const cell = page.cells[comparison.baseline]!;
  const found: Record<string, string> = { metric: page.metrics[comparison.metric]!.name, x: "" };
  page.factors.forEach((factor, place) => {
    if (factor.levels.length < 2 || factor.name === "size") return;
    found["f." + factor.name] = place === comparison.factor ? ALL : factor.levels[cell.levels[place]!]!;
  });
  return found;
}
