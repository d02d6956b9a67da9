// Where the marks of the forest plot are, in per cent of its width. Drawing only: nothing here is a result.
import type { ForestRow, Span } from "../document";
import { scale } from "../chart/scale";

/** The axis of one group of rows. */
export interface ForestAxis {
  /** Per cent of the width; beyond 0 to 100 where the figure has no room. */
  at(figure: number): number;
  ticks: readonly { at: number; label: string }[];
  isLog: boolean;
}

/** As far down as up: a half is as far from nothing as twice as much. */
const stretched = (row: ForestRow, figure: number) => (row.is_ratio ? Math.log1p(Math.max(figure, -99.9) / 100) : figure);

/** How far a row reaches from no difference. */
const reachOf = (row: ForestRow, span: Span) => Math.max(...[span.low, span.middle, span.high].map((end) => Math.abs(stretched(row, end))));

/**
 * The widest that the axis shows: everything while rows are about as wide as each other, and else four times the middle
 * one, so that one wide row does not make points of all others.
 */
export function reach(rows: readonly ForestRow[]): number {
  const wide = rows.flatMap((row) => (row.whole === null ? [] : [reachOf(row, row.whole)])).sort((a, b) => a - b);
  const margins = rows.flatMap((row) => row.margin.map((end) => Math.abs(stretched(row, end))));
  const middle = wide[(wide.length - 1) >> 1] ?? 0;
  return Math.max(Math.min(wide.at(-1) ?? 0, 4 * middle), 1.5 * Math.max(...margins, 0), 1e-9) * 1.08;
}

/** Ticks of ratios, per cent more or less; above 100 % they are labelled as factors, as figures are. */
const RATIOS = [-99, -90, -75, -50, -30, -20, -10, -5, -2, -1, -0.5, 0, 0.5, 1, 2, 5, 10, 25, 50, 100, 300, 900, 9900];

/** Ticks closer than this many per cent of the width run into each other on a phone. */
const APART = 13;

export function axis(rows: readonly ForestRow[]): ForestAxis {
  const most = reach(rows);
  const isLog = rows[0]?.is_ratio ?? false;
  const at = (figure: number) => 50 + (50 * stretched(rows[0]!, figure)) / most;
  const figures = isLog ? RATIOS : linear(most);
  const ticks: { at: number; label: string }[] = [{ at: 50, label: "0" }];
  for (const side of [1, -1]) {
    // From no difference outwards, so that both sides keep what is near it.
    let last = 50;
    for (const figure of figures.filter((one) => one * side > 0).sort((a, b) => side * (a - b))) {
      const place = at(figure);
      if (place < 4 || place > 96 || Math.abs(place - last) < APART) continue;
      ticks.push({ at: place, label: isLog && figure > 100 ? `${1 + figure / 100}x` : (figure > 0 ? "+" : "") + Number(figure.toPrecision(6)) });
      last = place;
    }
  }
  return { at, ticks: ticks.sort((a, b) => a.at - b.at), isLog };
}

function linear(most: number): number[] {
  return scale({ low: -most, high: most }, false, 0, 100, 6, false).ticks.map(({ label }) => Number(label));
}

/** A bar within the plot, and the sides on which it extends beyond. */
export interface Bar {
  from: number;
  to: number;
  middle: number | undefined;
  isCut: readonly [boolean, boolean];
}

export function bar({ at }: ForestAxis, { low, middle, high }: Span): Bar {
  const clamped = (figure: number) => Math.min(Math.max(at(figure), 0), 100);
  const place = at(middle);
  return { from: clamped(low), to: clamped(high), middle: place >= 0 && place <= 100 ? place : undefined, isCut: [at(low) < 0, at(high) > 100] };
}
