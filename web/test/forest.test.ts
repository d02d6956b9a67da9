import { expect, test } from "vitest";
import type { ForestRow } from "../src/document";
import { axis, bar, reach } from "../src/verdicts/axis";
import { columns, isLong } from "../src/verdicts/columns";
import { page } from "./page";

function row(middle: number, half: number, some: Partial<ForestRow> = {}): ForestRow {
  return {
    pair: 0,
    metric: "throughput",
    transport: "TCP",
    unit: "%",
    is_ratio: true,
    higher_is_better: true,
    outcome: "inconclusive",
    strength: 0,
    words: "inconclusive",
    whole: { middle, low: middle - half, high: middle + half },
    shown: "",
    parts: [],
    controls: [],
    margin: [-1.961, 2],
    ...some,
  };
}

test("a half is as far from no difference as twice as much", () => {
  const plan = axis([row(-50, 5), row(100, 5)]);
  expect(plan.isLog).toBe(true);
  expect(50 - plan.at(-50)).toBeCloseTo(plan.at(100) - 50, 9);
  const points = axis([row(-2, 1, { is_ratio: false, unit: "points" }), row(4, 1, { is_ratio: false, unit: "points" })]);
  expect(points.at(4) - 50).toBeCloseTo(2 * (50 - points.at(-2)), 9);
});

test("one wide row leaves the others readable, and is cut with a mark on its side", () => {
  const narrow = [row(-5, 1), row(3, 1), row(6, 2)];
  const rows = [...narrow, row(1470, 800)];
  expect(reach(rows)).toBeLessThan(5 * reach(narrow));
  const plan = axis(rows);
  expect(bar(plan, rows[3]!.whole!)).toMatchObject({ to: 100, middle: undefined, isCut: [false, true] });
  const seen = bar(plan, rows[0]!.whole!);
  expect(seen.isCut).toEqual([false, false]);
  expect(seen.middle).toBeLessThan(45);
});

test("a row alone is shown whole, and the margin always", () => {
  for (const rows of [[row(300, 100)], [row(0.1, 0.01)]]) {
    const plan = axis(rows);
    expect(bar(plan, rows[0]!.whole!).isCut).toEqual([false, false]);
    for (const end of rows[0]!.margin) expect(Math.abs(plan.at(end) - 50)).toBeLessThan(50);
  }
});

/** The per cent that a tick says. */
const figureOf = (label: string) => (label.endsWith("x") ? 100 * (Number(label.slice(0, -1)) - 1) : Number(label));

test("ticks stand at their figures, on both sides, and apart", () => {
  for (const half of [0.5, 4, 30, 90]) {
    for (const is_ratio of [true, false]) {
      const plan = axis([row(half / 10, half, { is_ratio })]);
      const places = plan.ticks.map((tick) => tick.at);
      expect(places.some((at) => at < 50) && places.some((at) => at > 50)).toBe(true);
      places.slice(1).forEach((at, i) => expect(at - places[i]!).toBeGreaterThan(9));
      for (const { at, label } of plan.ticks) expect(plan.at(figureOf(label)), label).toBeCloseTo(at, 6);
    }
  }
});

test("ticks above 100 % are factors, as the figures beside them", () => {
  const plan = axis([row(1470, 400)]);
  expect(plan.ticks.map(({ label }) => label)).toContain("10x");
  expect(plan.at(900)).toBe(plan.ticks.find(({ label }) => label === "10x")!.at);
});

test("a long record has a column for each metric by which a pair may differ, and names the others", () => {
  const made = page();
  made.pairs = ["6in4 vs native", "siit vs native"];
  const of = (metric: string, pair: number, outcome: ForestRow["outcome"]) => row(0, 1, { metric, pair, outcome });
  made.forest = [of("throughput", 0, "equivalent"), of("throughput", 1, "baseline"), of("loss", 0, "unseen"), of("loss", 1, "equivalent")];
  expect(columns(made)).toEqual({ metrics: ["throughput"], alike: ["loss"] });
  expect(isLong(made)).toBe(false);
  made.forest = Array.from({ length: 25 }, (_, place) => of(`m${place}`, place % 2, "inconclusive"));
  expect(isLong(made)).toBe(true);
  expect(isLong({ ...made, pairs: ["one"] })).toBe(false);
});
