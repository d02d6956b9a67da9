import { expect, test } from "vitest";
import { csv, fileName } from "../src/explorer/download";
import { select, stateFor } from "../src/explorer/select";
import { page } from "./page";

test("without a word in the URL the first metric is shown over size, arms apart, of the first transport", () => {
  const shown = select(page(), {})!;
  expect(shown.metric.name).toBe("throughput");
  expect(shown.axis.name).toBe("size");
  expect(shown.lines.map((line) => line.label)).toEqual(["IPv4", "IPv6"]);
  expect(shown.lines[0]!.points.map((point) => point.estimate.mean)).toEqual([50, 51]);
  expect(shown.common).toBe("TCP");
});

test("a metric that a transport does not have is shown of the one that has it", () => {
  const shown = select(page(), { metric: "loss" })!;
  expect(shown.choices.find((choice) => choice.factor.name === "transport")!.chosen).toBe(1);
  expect(shown.lines.flatMap((line) => line.points).some((point) => point.estimate.mean !== null)).toBe(true);
});

test("what is chosen is shown, and what is unknown is as if it was not there", () => {
  const all = select(page(), { "f.transport": "all", "f.family": "ipv6" })!;
  expect(all.lines.map((line) => line.label)).toEqual(["TCP", "UDP"]);
  const unknown = select(page(), { metric: "<script>", x: "nothing", "f.transport": "sctp" })!;
  expect(unknown.metric.name).toBe("throughput");
  expect(unknown.axis.name).toBe("size");
});

test("another factor may be across", () => {
  const shown = select(page(), { x: "family" })!;
  expect(shown.numeric).toBe(false);
  expect(shown.lines.map((line) => line.label)).toEqual(["128 B", "1408 B"]);
  expect(shown.rows.map((row) => row.label)).toEqual(["IPv4", "IPv6"]);
  expect(shown.overlays).toEqual([]);
});

test("published series of one label are told apart by their transport", () => {
  const document = page();
  document.published = ["tcp", "udp", null].map((transport) => ({ label: "Ubuntu", metric: 0, transport, points: [] }));
  const labels = (state: Record<string, string>) => select(document, state)!.overlays.map((series) => series.label);
  expect(labels({ "f.transport": "all" })).toEqual(["Ubuntu, TCP", "Ubuntu, UDP", "Ubuntu, any transport"]);
  expect(labels({})).toEqual(["Ubuntu, TCP", "Ubuntu, any transport"]);
});

test("published figures are those of the transport that is shown", () => {
  expect(select(page(), {})!.overlays.map((series) => series.label)).toEqual(["Ubuntu"]);
  expect(select(page(), { "f.transport": "udp" })!.overlays.map((series) => series.label)).toEqual(["Vista"]);
});

test("single runs stand at the cell and metric that they are of, and limits too", () => {
  const point = select(page(), {})!.lines[0]!.points[0]!;
  expect(point.runs).toEqual([49, 51]);
  expect(point.limit).toBe(58.7);
});

test("a comparison stands in its row, and leads to the state that shows it", () => {
  const shown = select(page(), {})!;
  expect(shown.rows.map((row) => row.comparisons.map((c) => c.words))).toEqual([["IPv4 better"], ["equivalent"]]);
  const state = stateFor(page(), page().comparisons[0]!);
  expect(state).toEqual({ metric: "throughput", x: "", "f.transport": "tcp", "f.family": "all" });
});

test("a comparison of what is across is of two rows, and stands in none", () => {
  const made = page();
  made.comparisons.push({ ...made.comparisons[0]!, factor: 3, baseline: 0, candidate: 1, arms: "1408 B vs 128 B" });
  const shown = select(made, {})!;
  expect(shown.between.map((c) => c.arms)).toEqual(["1408 B vs 128 B"]);
  expect(shown.rows.map((row) => row.comparisons.length)).toEqual([1, 1]);
});

test("the CSV has what is shown, unrounded, and no figure where there is none", () => {
  const lines = csv(select(page(), { metric: "loss" })!).trimEnd().split("\r\n");
  expect(lines).toHaveLength(5);
  expect(lines[1]).toBe("128,ipv4,loss,%,0,,,,,,,no arrivals");
  expect(lines[2]).toBe("1408,ipv4,loss,%,8,0.5,0.45,0.55,0.05,0.5,,");
});

test("lines are called by labels on the page and by keys in the CSV", () => {
  const made = page();
  made.factors.push({ name: "mtu", label: "MTU", levels: ["", "1280"], labels: ["as it is", "1280"], alone: ["MTU as it is", "MTU 1280"], numbers: null });
  made.cells.forEach((cell, place) => cell.levels.push(place % 2));
  const shown = select(made, { "f.mtu": "all", x: "size" })!;
  expect(shown.lines.map((line) => line.label)).toEqual(["IPv4", "IPv4, MTU 1280", "IPv6", "IPv6, MTU 1280"]);
  expect(csv(shown).split("\r\n")[2]).toMatch(/^1408,family=ipv4 mtu=1280,throughput,/);
});

test("no field of the CSV is a formula to a spreadsheet", () => {
  const made = page();
  const shown = select(made, { metric: "loss" })!;
  shown.lines[0]!.points[0]!.estimate.missing = "=HYPERLINK(1)";
  expect(csv(shown).split("\r\n")[1]).toMatch(/,'=HYPERLINK\(1\)$/);
  shown.lines[0]!.points[1]!.estimate.mean = -1.5;
  expect(csv(shown).split("\r\n")[2]).toContain(",-1.5,");
});

test("a downloaded file has a plain name", () => {
  const shown = { ...select(page(), {})!, common: '../../"a" <b>' };
  expect(fileName(shown, "svg")).toBe("throughput-a-b.svg");
});
