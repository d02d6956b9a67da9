import { expect, test } from "vitest";
import { layout, xTitle, yTitle, type Options } from "../src/chart/Chart";
import { isWide, LIT, litLines, select } from "../src/explorer/select";
import { byAge, stateOf } from "../src/serve/CampaignList";
import { estimate, page } from "./page";

const plain: Options = { logX: true, logY: false, intervals: true, limits: true, published: true, runs: false, fromZero: false };

/** The document with a factor that some cells leave as it is. */
function many(levels: number): ReturnType<typeof page> {
  const made = page();
  const names = Array.from({ length: levels }, (_, level) => (level === 0 ? "" : `m${level}`));
  const labels = names.map((name) => name || "as it is");
  made.factors.push({ name: "flow_label", label: "flow label", levels: names, labels, alone: labels.map((level) => `flow label ${level}`), numbers: null });
  made.cells = names.flatMap((_, level) => page().cells.map((cell) => ({ ...cell, levels: [...cell.levels, level] })));
  made.estimates = made.cells.map((_, cell) => estimate(cell, 0, 50 + cell));
  return made;
}

test("a line is named by what its cell sets", () => {
  const labels = select(many(3), { "f.flow_label": "all" })!.lines.map((line) => line.label);
  expect([...labels].sort()).toEqual(["IPv4", "IPv4, flow label m1", "IPv4, flow label m2", "IPv6", "IPv6, flow label m1", "IPv6, flow label m2"]);
  expect(select(many(3), { "f.flow_label": "all", "f.family": "ipv4" })!.lines.map((line) => line.label)).toEqual(["as it is", "flow label m1", "flow label m2"]);
});

test("of many lines six are in colour: those that others are compared with first, or those that are chosen", () => {
  expect(litLines([0, 0, 3], undefined)).toEqual([0, 1, 2]);
  expect(litLines([0, 0, 0, 0, 0, 0, 0, 9], undefined)).toEqual([7, 0, 1, 2, 3, 4]);
  expect(litLines([0, 0, 0, 0, 0, 0, 0, 9], "2.5.77.x")).toEqual([2, 5]);
  const shown = select(many(6), { "f.flow_label": "all" })!;
  expect(shown.lines.length).toBe(12);
  expect(shown.lines.filter((line) => line.look !== undefined).length).toBe(LIT);
  expect(isWide(shown)).toBe(true);
  expect(isWide(select(page(), {})!)).toBe(false);
});

test("an axis has no figures that cannot be, and says where it is logarithmic", () => {
  const made = page();
  for (const one of made.estimates) one.low = -40;
  const lowest = () => Math.min(...layout(select(made, {})!, plain, 600, 400).ticksY.map((tick) => Number(tick.label)));
  expect(lowest()).toBe(0);
  made.metrics[0]!.can_be_negative = true;
  expect(lowest()).toBeLessThan(0);
  const shown = select(made, {})!;
  expect(layout(shown, plain, 600, 400).isLogX).toBe(true);
  expect(layout(shown, { ...plain, logX: false }, 600, 400).isLogX).toBe(false);
  expect([xTitle(shown, true), yTitle(shown, false)]).toEqual(["size, bytes (log scale)", "throughput, Mbit/s"]);
});

test("the older record is A, and a campaign's state is told by its lock and its end", () => {
  const row = (name: string, started: string) => ({ name, started, title: "", runs: 1, running: false, changed_s: 0, error: null });
  const rows = [row("new", "2026-02-01T00:00:00Z"), row("old", "2026-01-31T00:00:00Z")];
  expect(byAge(rows, ["new", "old"])).toEqual(["old", "new"]);
  expect([stateOf(true, false), stateOf(false, true), stateOf(false, false)]).toEqual(["running", "ended", "interrupted"]);
});
