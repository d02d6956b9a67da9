// From figures to places on an axis, and the ticks of it. Drawing only: nothing here is a result.

export interface Scale {
  /** The place of a figure, pixels. */
  at(figure: number): number;
  ticks: readonly { at: number; label: string }[];
}

export interface Extent {
  low: number;
  high: number;
}

/** The least and the most of figures; on a logarithmic axis only of those that have a place on it. */
export function extent(figures: Iterable<number>, log: boolean): Extent | undefined {
  let low = Infinity;
  let high = -Infinity;
  for (const figure of figures) {
    if (!Number.isFinite(figure) || (log && figure <= 0)) continue;
    low = Math.min(low, figure);
    high = Math.max(high, figure);
  }
  return low <= high ? { low, high } : undefined;
}

/** A tick's text: the digits that the step between ticks needs, so that it says the very place of the tick. */
export function tickLabel(figure: number, step: number): string {
  if (figure === 0) return "0";
  if (step >= 1e-6 && step < 1e6) return figure.toFixed(decimals(step));
  const power = Math.floor(Math.log10(Math.abs(figure)) + 1e-9);
  return figure.toExponential(decimals(step / 10 ** power)).replace("e+", "e");
}

/** How many decimals a step has. */
function decimals(step: number): number {
  for (let many = 0; many < 9; many++) {
    const whole = step * 10 ** many;
    if (Math.abs(whole - Math.round(whole)) < 1e-6 * whole) return many;
  }
  return 9;
}

function linearStep(span: number, wanted: number): number {
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 2.5, 5, 10].find((candidate) => candidate * power >= rough) ?? 10;
  return factor * power;
}

/** An axis from the pixel `from` to the pixel `to`, with about this many ticks. `fromZero` has a linear axis begin there. */
export function scale(
  range: Extent | undefined,
  log: boolean,
  from: number,
  to: number,
  wanted: number,
  fromZero: boolean,
): Scale {
  let { low, high } = range ?? { low: log ? 1 : 0, high: log ? 10 : 1 };
  if (log) {
    if (low === high) [low, high] = [low / 2, high * 2];
    const [a, b] = [Math.log10(low), Math.log10(high)];
    const pad = 0.04 * (b - a);
    const at = (figure: number) => from + ((Math.log10(figure) - a + pad) / (b - a + 2 * pad)) * (to - from);
    return { at, ticks: logTicks(low, high, wanted).map((figure) => ({ at: at(figure), label: tickLabel(figure, figure) })) };
  }
  if (fromZero && low > 0) low = 0;
  if (low === high) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) / 2, high + Math.abs(high) / 2];
  const step = linearStep(high - low, wanted);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  const at = (figure: number) => from + ((figure - first * step) / ((last - first) * step)) * (to - from);
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  return { at, ticks: ticks.map((figure) => ({ at: at(figure), label: tickLabel(figure, step) })) };
}

function logTicks(low: number, high: number, wanted: number): number[] {
  const decades = Math.log10(high / low);
  const factors = decades > wanted ? [1] : decades > 1.5 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const factor of factors) {
      const figure = Number((factor * 10 ** power).toPrecision(3));
      if (figure >= low * 0.999 && figure <= high * 1.001) found.push(figure);
    }
  }
  if (found.length > 1) return found;
  // Figures so close that no round figure of the above is between them.
  const step = linearStep(high - low, wanted);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Places with names, side by side. */
export function places(labels: readonly string[], from: number, to: number): Scale {
  const width = (to - from) / Math.max(1, labels.length);
  const at = (place: number) => from + (place + 0.5) * width;
  return { at, ticks: labels.map((label, place) => ({ at: at(place), label })) };
}

/** Leaves out ticks whose labels would run into each other; the first and the last stay, for they say how far it goes. */
export function thinned(scale: Scale, apart: (label: string) => number): Scale {
  const end = scale.ticks.at(-1);
  let last = -Infinity;
  const ticks = scale.ticks.filter((tick) => {
    const nearEnd = tick !== end && last !== -Infinity && end!.at - tick.at < apart(end!.label);
    const keep = tick === end || (tick.at - last >= apart(tick.label) && !nearEnd);
    if (keep) last = tick.at;
    return keep;
  });
  return { at: scale.at, ticks };
}
