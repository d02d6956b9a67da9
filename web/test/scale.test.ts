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
  expect(tickLabel(2.5, 2.5)).toBe("2.5");
  expect(tickLabel(1450000, 50000)).toBe("1450000");
  expect(tickLabel(2000000, 1000000)).toBe("2e6");
  expect(tickLabel(12500000, 2500000)).toBe("1.25e7");
  expect(tickLabel(0, 10)).toBe("0");
});

test("a tick's text says its place", () => {
  const ranges: [number, number][] = [
    [4.2371, 4.7123], [0.00001, 0.00006], [2e-8, 9e-8], [1.41e6, 1.52e6], [0, 2.1e7], [-8.5, 0.3], [1e9, 1.0001e9],
  ];
  for (const high of [0.1, 0.9, 1, 1.1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12.3]) {
    for (const power of [1e-3, 1e-2, 0.1, 1, 10, 1e3, 1e6]) ranges.push([0, high * power]);
  }
  for (const [low, high] of ranges) {
    for (const wanted of [3, 4, 5, 6, 7]) {
      for (const log of [false, true]) {
        if (log && low <= 0) continue;
        const made = scale({ low, high }, log, 0, 1000, wanted, false);
        expect(made.ticks.length).toBeGreaterThan(0);
        for (const { at, label } of made.ticks) expect(made.at(Number(label)), `${label} of ${low} to ${high}`).toBeCloseTo(at, 2);
      }
    }
  }
});

test("labels that would run into each other are left out", () => {
  const all = places(["a", "b", "c", "d"], 0, 40);
  expect(thinned(all, () => 15).ticks.map((tick) => tick.label)).toEqual(["a", "d"]);
  expect(thinned(all, () => 5).ticks.map((tick) => tick.label)).toEqual(["a", "b", "c", "d"]);
});
