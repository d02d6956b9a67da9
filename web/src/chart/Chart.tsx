// The chart of the explorer, as SVG alone: what is seen is what is downloaded and printed.
import type { ComponentChildren } from "preact";
import { isOpen, look, outline, type Theme } from "./palette";
import { extent, places, scale, thinned } from "./scale";
import type { Shown } from "../explorer/select";

export interface Options {
  logX: boolean;
  logY: boolean;
  intervals: boolean;
  limits: boolean;
  published: boolean;
  runs: boolean;
  fromZero: boolean;
}

/** A point with its place, for the pointer and the keyboard. */
export interface Spot {
  x: number;
  y: number;
  line: number;
  point: number;
}

export interface Layout {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
  x: (level: number) => number;
  xOfSize: (size: number) => number;
  y: (figure: number) => number;
  ticksX: readonly { at: number; label: string }[];
  /** Whether the axis across is logarithmic. */
  isLogX: boolean;
  ticksY: readonly { at: number; label: string }[];
  spots: readonly Spot[];
}

const inks: Record<Theme, { ink: string; faint: string; grid: string; ground: string }> = {
  light: { ink: "#16191d", faint: "#50575f", grid: "#dfe3e8", ground: "#ffffff" },
  dark: { ink: "#e8eaed", faint: "#a9b1ba", grid: "#363c44", ground: "#15181c" },
};

/** Where everything is. */
export function layout(shown: Shown, options: Options, width: number, height: number): Layout {
  const drawable = (figure: number | null | undefined) => typeof figure === "number" && (!options.logY || figure > 0);
  const figures: number[] = [];
  for (const { points, look } of shown.lines) {
    for (const { estimate, limit, runs } of points) {
      const intervals = options.intervals && look !== undefined;
      for (const figure of [estimate.mean, intervals ? reached(shown, estimate.low) : null, intervals ? estimate.high : null]) {
        if (drawable(figure)) figures.push(figure!);
      }
      if (options.limits && look !== undefined && drawable(limit)) figures.push(limit!);
      if (options.runs && look !== undefined) figures.push(...runs);
    }
  }
  if (options.published) for (const series of shown.overlays) figures.push(...series.points.map(([, y]) => y));
  const [top, bottom] = [14, height - 46];
  const y = scale(extent(figures, options.logY), options.logY, bottom, top, Math.max(3, Math.round(height / 60)), options.fromZero);
  const widest = Math.max(...y.ticks.map((tick) => tick.label.length), 1);
  const [left, right] = [30 + 7.5 * widest, width - 14];

  const numbers = shown.axis.numbers;
  const used = [...new Set(shown.lines.flatMap((line) => line.points.map((point) => point.x)))].sort((a, b) => a - b);
  let x: (level: number) => number;
  let xOfSize: (size: number) => number = () => NaN;
  let ticksX: readonly { at: number; label: string }[];
  const isNumeric = numbers !== null && (!options.logX || numbers.every((figure) => figure > 0));
  if (isNumeric) {
    const values = used.map((level) => numbers[level]!);
    if (options.published) values.push(...shown.overlays.flatMap((series) => series.points.map(([size]) => size)));
    const span = extent(values, options.logX);
    const made = scale(span, options.logX, left + 12, right - 12, Math.round(width / 90), false);
    const [a, b] = [span?.low ?? 0, span?.high ?? 1];
    // Linear axes of sizes begin and end at the sizes themselves; ticks stand at what was measured.
    const linear = (figure: number) => left + 14 + ((figure - a) / (b - a || 1)) * (right - left - 28);
    xOfSize = options.logX ? made.at : linear;
    x = (level) => xOfSize(numbers[level]!);
    const all = { at: (figure: number) => figure, ticks: used.map((level) => ({ at: x(level), label: String(numbers[level]) })) };
    ticksX = thinned(all, (label) => 12 + 7 * label.length).ticks;
  } else {
    const made = places(used.map((level) => shown.axis.labels[level]!), left, right);
    x = (level) => made.at(used.indexOf(level));
    ticksX = thinned(made, (label) => 10 + 6.5 * label.length).ticks;
  }
  const spots = shown.lines.flatMap((line, number) =>
    line.points.flatMap(({ x: level, estimate }, point) =>
      drawable(estimate.mean) ? [{ x: x(level) + beside(shown, number), y: y.at(estimate.mean!), line: number, point }] : [],
    ),
  );
  return { width, height, left, right, top, bottom, x, xOfSize, y: y.at, ticksX, isLogX: isNumeric && options.logX, ticksY: y.ticks, spots };
}

/** Lines stand a little beside each other, so that their intervals do not hide one another. */
function beside({ lines }: Shown, line: number): number {
  const place = lines[line]!.look;
  const lit = lines.filter(({ look }) => look !== undefined).length;
  return lit < 2 || place === undefined ? 0 : (place - (lit - 1) / 2) * Math.min(4, 14 / lit);
}

/** The lower end of an interval, as far as the metric reaches: there is no time below zero. */
function reached(shown: Shown, low: number | null): number | null {
  return low === null || shown.metric.can_be_negative ? low : Math.max(0, low);
}

const LOG = " (log scale)";

export function yTitle(shown: Shown, isLog: boolean): string {
  return `${shown.metric.label}, ${shown.metric.unit}${isLog ? LOG : ""}`;
}

export function xTitle(shown: Shown, isLog: boolean): string {
  const name = shown.axis.name === "size" ? "size, bytes" : shown.axis.label;
  return `${name}${isLog ? LOG : ""}`;
}

interface Props {
  shown: Shown;
  options: Options;
  theme: Theme;
  plan: Layout;
  /** Bare, for a separate file: with its background and its legend. */
  alone?: boolean;
  children?: ComponentChildren;
}

export function Chart({ shown, options, theme, plan, alone = false, children }: Props) {
  const { ink, faint, grid, ground } = inks[theme];
  const legend = alone ? legendOf(shown, options) : [];
  const height = plan.height + (alone ? 22 + 18 * legend.length : 0);
  return (
    <svg
      xmlns="http://www.w3.org/2000/svg"
      viewBox={`0 0 ${plan.width} ${height}`}
      width={plan.width}
      height={height}
      font-family="system-ui, 'DejaVu Sans', Arial, sans-serif"
      font-size="12"
      role={alone ? "img" : "presentation"}
    >
      {alone && <title>{`${yTitle(shown, options.logY)} by ${xTitle(shown, plan.isLogX)}; ${shown.common}`}</title>}
      {alone && <rect width={plan.width} height={height} fill={ground} />}
      <g stroke={grid} fill="none">
        {plan.ticksY.map((tick) => <path key={tick.at} d={`M${plan.left} ${tick.at.toFixed(1)}H${plan.right}`} />)}
      </g>
      <g fill={faint} text-anchor="end">
        {plan.ticksY.map((tick) => <text key={tick.at} x={plan.left - 6} y={tick.at + 4}>{tick.label}</text>)}
      </g>
      <path d={`M${plan.left} ${plan.top}V${plan.bottom}H${plan.right}`} stroke={faint} fill="none" />
      <g stroke={faint}>
        {plan.ticksX.map((tick) => <path key={tick.at} d={`M${tick.at.toFixed(1)} ${plan.bottom}v4`} />)}
      </g>
      <g fill={faint} text-anchor="middle">
        {plan.ticksX.map((tick) => <text key={tick.at} x={tick.at} y={plan.bottom + 17}>{tick.label}</text>)}
      </g>
      <text x={(plan.left + plan.right) / 2} y={plan.bottom + 36} fill={ink} text-anchor="middle">{xTitle(shown, plan.isLogX)}</text>
      <text transform={`translate(13 ${(plan.top + plan.bottom) / 2}) rotate(-90)`} fill={ink} text-anchor="middle">
        {yTitle(shown, options.logY)}
      </text>
      {options.published && shown.overlays.map((series, number) => <Published key={series.label} {...{ series, number, plan, options, faint }} />)}
      {shown.lines.map((line) => line.look === undefined && <GreyLine key={line.label} {...{ line, plan, options, grid: faint }} />)}
      {shown.lines.map((line, number) => line.look !== undefined && <LineMarks key={line.label} {...{ line, number, shown, plan, options, theme, ground }} />)}
      {alone && <text x={plan.left} y={plan.height + 12} fill={faint}>{shown.common}</text>}
      {legend.map((entry, place) => <LegendMark key={entry.label} {...{ entry, place, plan, theme, ink, ground, faint }} />)}
      {children}
    </svg>
  );
}

interface LineProps {
  line: Shown["lines"][number];
  number: number;
  shown: Shown;
  plan: Layout;
  options: Options;
  theme: Theme;
  ground: string;
}

/** A line that is there for comparison only. */
function GreyLine({ line, plan, options, grid }: { line: Shown["lines"][number]; plan: Layout; options: Options; grid: string }) {
  const means = line.points.flatMap(({ x, estimate: { mean } }) => (mean === null || (options.logY && mean <= 0) ? [] : [`${plan.x(x).toFixed(1)} ${plan.y(mean).toFixed(1)}`]));
  return <path d={means.map((at, i) => `${i ? "L" : "M"}${at}`).join("")} stroke={grid} fill="none" opacity="0.35" data-grey={line.label} />;
}

function LineMarks({ line, number, shown, plan, options, theme, ground }: LineProps) {
  const { colour, marker, dash } = look(line.look ?? 0, theme);
  const aside = beside(shown, number);
  const isDrawn = (figure: number | null | undefined): figure is number => typeof figure === "number" && (!options.logY || figure > 0);
  const at = (figure: number) => plan.y(figure).toFixed(1);
  const path = (pairs: readonly (readonly [number, number])[]) => pairs.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const means = line.points.flatMap((p) => (isDrawn(p.estimate.mean) ? [[plan.x(p.x) + aside, plan.y(p.estimate.mean)] as const] : []));
  const limits = line.points.flatMap((p) => (isDrawn(p.limit) ? [[plan.x(p.x), plan.y(p.limit)] as const] : []));
  // A single place has no length.
  const limit = limits.length > 1 ? path(limits) : limits.map(([x, y]) => `M${(x - 12).toFixed(1)} ${y.toFixed(1)}h24`).join("");
  const bars = line.points.flatMap(({ x, estimate }) => {
    const [low, high] = [reached(shown, estimate.low), estimate.high];
    if (!isDrawn(high) || low === null) return [];
    const place = (plan.x(x) + aside).toFixed(1);
    // On a logarithmic axis what reaches below everything ends at the axis.
    const foot = isDrawn(low) ? at(low) : plan.bottom.toFixed(1);
    return [`M${place} ${foot}V${at(high)}m-4 0h8${isDrawn(low) ? `M${place} ${foot}m-4 0h8` : ""}`];
  });
  const dots = options.runs
    ? line.points.flatMap((p) => p.runs.filter(isDrawn).map((figure) => `M${(plan.x(p.x) + aside).toFixed(1)} ${at(figure)}h0`))
    : [];
  return (
    <g stroke={colour} fill="none" stroke-width="1.8">
      {options.limits && limits.length > 0 && <path d={limit} stroke-dasharray="3 4" stroke-width="1.4" data-limit={line.label} />}
      {dots.length > 0 && <path d={dots.join("")} stroke-width="4" stroke-linecap="round" opacity="0.35" />}
      {options.intervals && <path d={bars.join("")} stroke-width="1.3" />}
      <path d={path(means)} stroke-dasharray={dash || undefined} />
      {means.map(([x, y], place) => (
        <path key={place} d={outline(marker, x, y, 4)} fill={isOpen(marker) ? (marker === "ring" ? ground : "none") : colour} />
      ))}
    </g>
  );
}

interface PublishedProps {
  series: Shown["overlays"][number];
  number: number;
  plan: Layout;
  options: Options;
  faint: string;
}

const publishedDashes = ["1 3", "5 2 1 2", "8 3", "2 2 6 2"];

function Published({ series, number, plan, options, faint }: PublishedProps) {
  const points = series.points.filter(([, y]) => !options.logY || y > 0);
  const path = points.map(([x, y], i) => `${i ? "L" : "M"}${plan.xOfSize(x).toFixed(1)} ${plan.y(y).toFixed(1)}`).join("");
  return (
    <g stroke={faint} fill="none" data-published={series.label}>
      <path d={path} stroke-dasharray={publishedDashes[number % publishedDashes.length]} />
      {points.map(([x, y]) => <path key={x} d={outline(number % 2 ? "square" : "ring", plan.xOfSize(x), plan.y(y), 3)} />)}
    </g>
  );
}

interface Entry {
  label: string;
  kind: "line" | "grey" | "limit" | "published";
  number: number;
}

function legendOf(shown: Shown, options: Options): Entry[] {
  const lines: Entry[] = shown.lines.flatMap(({ label, look }) => (look === undefined ? [] : [{ label, kind: "line", number: look }]));
  if (lines.length < shown.lines.length) lines.push({ label: `grey: ${shown.lines.length - lines.length} more`, kind: "grey", number: 0 });
  const limited = options.limits && shown.lines.some((line) => line.points.some((point) => point.limit !== undefined));
  if (limited) lines.push({ label: `dashed: limit by ${shown.limitedBy}`, kind: "limit", number: 0 });
  if (options.published) {
    shown.overlays.forEach((series, number) => lines.push({ label: `published: ${series.label}`, kind: "published", number }));
  }
  return lines;
}

interface LegendProps {
  entry: Entry;
  place: number;
  plan: Layout;
  theme: Theme;
  ink: string;
  faint: string;
  ground: string;
}

function LegendMark({ entry, place, plan, theme, ink, faint, ground }: LegendProps) {
  const y = plan.height + 28 + 18 * place;
  const { colour, marker, dash } = look(entry.number, theme);
  return (
    <g>
      {entry.kind === "line" && <path d={`M${plan.left} ${y}h26`} stroke={colour} stroke-width="1.8" stroke-dasharray={dash || undefined} />}
      {entry.kind === "line" && (
        <path d={outline(marker, plan.left + 13, y, 4)} stroke={colour} fill={isOpen(marker) ? (marker === "ring" ? ground : "none") : colour} />
      )}
      {entry.kind === "grey" && <path d={`M${plan.left} ${y}h26`} stroke={faint} opacity="0.35" />}
      {entry.kind === "limit" && <path d={`M${plan.left} ${y}h26`} stroke={faint} stroke-dasharray="3 4" />}
      {entry.kind === "published" && (
        <path d={`M${plan.left} ${y}h26`} stroke={faint} stroke-dasharray={publishedDashes[entry.number % publishedDashes.length]} />
      )}
      <text x={plan.left + 34} y={y + 4} fill={ink}>{entry.label}</text>
    </g>
  );
}

/** A line's sign in the legend of the page; without a number that of a grey line. */
export function Swatch({ number, theme }: { number: number | undefined; theme: Theme }) {
  if (number === undefined) {
    return <svg width="30" height="14" viewBox="0 0 30 14" aria-hidden="true"><path d="M0 7H30" stroke={inks[theme].faint} opacity="0.5" /></svg>;
  }
  const { colour, marker, dash } = look(number, theme);
  return (
    <svg width="30" height="14" viewBox="0 0 30 14" aria-hidden="true">
      <path d="M0 7H30" stroke={colour} stroke-width="1.8" stroke-dasharray={dash || undefined} />
      <path d={outline(marker, 15, 7, 4)} stroke={colour} stroke-width="1.5" fill={isOpen(marker) ? "none" : colour} />
    </svg>
  );
}
