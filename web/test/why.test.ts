import { expect, test } from "vitest";
import type { FlameView, WaterfallRow } from "../src/document";
import { chosen } from "../src/why/Flame";
import { boxes, callers, found } from "../src/why/layout";
import { reach } from "../src/why/Waterfall";

/** entry calls v4 (which calls lookup) and v6; user stands alone. */
const flame: FlameView = {
  names: ["entry", "send_v4", "lookup", "send_v6", "user"],
  name: [0, 1, 2, 3, 4],
  depth: [0, 1, 2, 1, 0],
  baseline: [60, 60, 40, 0, 20],
  candidate: [100, 0, 0, 90, 20],
  tone: [1, -3, -2, 3, 0],
};

test("a function is within its caller, as wide as its time in both arms, beside what its caller calls else", () => {
  const all = boxes(flame, undefined, 0);
  expect(all.map((box) => [box.node, box.left * 200, box.width * 200, box.depth])).toEqual([
    [0, 0, 160, 0],
    [1, 0, 60, 1],
    [2, 0, 40, 2],
    [3, 60, 90, 1],
    [4, 160, 40, 0],
  ]);
  expect(boxes(flame, undefined, 0.25).map((box) => box.node)).toEqual([0, 1, 3]);
});

test("one function fills the graph below its callers", () => {
  const all = boxes(flame, 1, 0);
  expect(all.map((box) => [box.node, box.width, box.depth])).toEqual([[0, 1, 0], [1, 1, 1], [2, 2 / 3, 2]]);
  expect(callers(flame, 2)).toEqual([0, 1]);
  expect(callers(flame, 4)).toEqual([]);
});

test("functions are found by part of their name, those with most time first", () => {
  expect(found(flame, "SEND")).toEqual([3, 1]);
  expect(found(flame, " ")).toEqual([]);
});

test("what the address says is a function of this graph, or none", () => {
  expect(chosen("1.2", 1, flame)).toBe(2);
  for (const text of [undefined, "", "0.2", "1.5", "1.-1", "1.x", "1"]) expect(chosen(text, 1, flame)).toBeUndefined();
});

test("the axis of a waterfall holds all steps with their intervals, and need not begin at zero", () => {
  const row = (from: number, to: number, half: number, is_whole = false): WaterfallRow => ({ name: "", is_whole, from, to, half, differs: false, shown: "" });
  const { low, high } = reach([row(0, 900, 0, true), row(900, 1000, 30), row(1000, 990, 5), row(0, 990, 0, true)]);
  expect(low).toBeGreaterThan(880);
  expect(low).toBeLessThan(900);
  expect(high).toBeGreaterThan(1030);
});
