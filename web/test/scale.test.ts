import { expect, test } from "vitest";
import { extent, places, scale, thinned, tickLabel } from "../src/chart/scale";

test("an extent leaves out what has no place on the axis", () => {
  expect(extent([3, NaN, 1, Infinity], false)).toEqual({ low: 1, high: 3 });
  expect(extent([0, -1, 5], true)).toEqual({ low: 5, high: 5 });
  expect(extent([], false)).toBeUndefined();
});

test("ticks are round, in order, and hold every figure", () => {
  for (const [low, high] of [[0.0451, 0.12], [21.3, 92.8], [0, 0], [-9.2, 3.4], [5, 5], [81274, 1488095]] as const) {
    const made = scale({ low, high }, false, 400, 0, 6, false);
    const places = made.ticks.map((tick) => tick.at);
    expect([...places].sort((a, b) => b - a)).toEqual(places);
    expect(made.at(low)).toBeLessThanOrEqual(400.001);
    expect(made.at(high)).toBeGreaterThanOrEqual(-0.001);
    expect(new Set(made.ticks.map((tick) => tick.label)).size).toBe(made.ticks.length);
  }
});

test("a logarithmic axis has equal steps for equal ratios", () => {
  const made = scale({ low: 64, high: 1024 }, true, 0, 100, 5, false);
  expect(made.at(256) - made.at(128)).toBeCloseTo(made.at(1024) - made.at(512), 9);
  expect(made.ticks.every((tick) => Number.isFinite(tick.at))).toBe(true);
  const alone = scale({ low: 7, high: 7 }, true, 0, 100, 5, false);
  expect(alone.at(7)).toBeCloseTo(50, 6);
});

test("from zero is asked for, and never below", () => {
  expect(scale({ low: 90, high: 100 }, false, 100, 0, 5, true).ticks[0]?.label).toBe("0");
  expect(scale({ low: 90, high: 100 }, false, 100, 0, 5, false).ticks[0]?.label).toBe("90");
});

test("a tick has the decimals of its step", () => {
  expect(tickLabel(0.30000000000000004, 0.1)).toBe("0.3");
  expect(tickLabel(1500000, 500000)).toBe("1.5e6");
  expect(tickLabel(2000000, 1000000)).toBe("2.0e6".replace(".0", ""));
  expect(tickLabel(0, 10)).toBe("0");
});

test("labels that would run into each other are left out", () => {
  const all = places(["a", "b", "c", "d"], 0, 40);
  expect(thinned(all, () => 15).ticks.map((tick) => tick.label)).toEqual(["a", "d"]);
  expect(thinned(all, () => 5).ticks.map((tick) => tick.label)).toEqual(["a", "b", "c", "d"]);
});
