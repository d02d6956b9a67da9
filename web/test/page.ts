// A small document, made by hand, for tests.
import type { ComparisonView, EstimateView, Page } from "../src/document";

export function estimate(cell: number, metric: number, mean: number | null): EstimateView {
  const half = mean === null ? null : Math.abs(mean) / 10;
  return {
    cell,
    metric,
    n: mean === null ? 0 : 8,
    mean,
    low: mean === null ? null : mean - half!,
    high: mean === null ? null : mean + half!,
    sd: half,
    median: mean,
    missing: mean === null ? "no arrivals" : null,
    shown: mean === null ? "-" : `${mean} ± ${half}`,
  };
}

function comparison(baseline: number, candidate: number, outcome: ComparisonView["outcome"]): ComparisonView {
  return {
    metric: 0,
    factor: 1,
    baseline,
    candidate,
    arms: "IPv6 vs IPv4",
    outcome,
    strength: outcome === "candidate" || outcome === "baseline" ? 2 : 0,
    sign: outcome === "baseline" ? "IPv4 8.4%" : "=",
    words: outcome === "baseline" ? "IPv4 better" : "equivalent",
    reason: null,
    difference: -8.4,
    low: -8.5,
    high: -8.3,
    shown: "-8.4 [-8.5, -8.3]",
    margin: [-2, 2],
    pairs: 8,
    adjusted_p: "0.010",
    headers: null,
  };
}

/** Two transports, two families, two sizes; throughput of all, loss of UDP only. */
export function page(): Page {
  const cells = [0, 1].flatMap((transport) => [0, 1].flatMap((family) => [0, 1].map((size) => [transport, family, 0, size])));
  return {
    format: 1,
    answer: null,
    title: "IPv4 beside IPv6",
    facts: [],
    legend: "",
    finished: true,
    answered: "",
    pairs: [],
    forest: [],
    why: [],
    losses: [],
    rfc8219: [],
    instructions: [],
    levels: [],
    sentences: [],
    matrix: { columns: [128, 1408], rows: [] },
    notes: [],
    metrics: [
      { name: "throughput", label: "throughput", unit: "Mbit/s", difference_unit: "%", higher_is_better: true, can_be_negative: false, definition: "", probe: "stream" },
      { name: "loss", label: "loss", unit: "%", difference_unit: "points", higher_is_better: false, can_be_negative: false, definition: "", probe: "stream" },
    ],
    factors: [
      { name: "transport", label: "transport", levels: ["tcp", "udp"], labels: ["TCP", "UDP"], alone: ["TCP", "UDP"], numbers: null },
      { name: "family", label: "family", levels: ["ipv4", "ipv6"], labels: ["IPv4", "IPv6"], alone: ["IPv4", "IPv6"], numbers: null },
      { name: "size_of", label: "size of", levels: ["payload"], labels: ["size of a payload"], alone: ["size of a payload"], numbers: null },
      { name: "size", label: "size", levels: ["128", "1408"], labels: ["128 B", "1408 B"], alone: ["128 B", "1408 B"], numbers: [128, 1408] },
    ],
    cells: cells.map((levels) => ({ label: levels.join(" "), levels })),
    estimates: [
      ...cells.map((_, cell) => estimate(cell, 0, 50 + cell)),
      ...cells.flatMap((levels, cell) => (levels[0] === 1 ? [estimate(cell, 1, cell === 4 ? null : 0.5)] : [])),
    ],
    comparisons: [comparison(0, 2, "baseline"), comparison(1, 3, "equivalent")],
    limited_by: "headers",
    limits: [{ cell: 0, metric: 0, value: 58.7 }],
    published: [
      { label: "Ubuntu", metric: 0, transport: "tcp", points: [[128, 40], [1408, 80]] },
      { label: "Vista", metric: 0, transport: "udp", points: [[128, 30]] },
    ],
    runs: {
      probes: ["stream", "echo"],
      block: [0, 0, 1],
      position: [0, 1, 0],
      cell: [0, 0, 0],
      probe: [0, 1, 0],
      started_s: [0, 1, 2],
      remarks: [],
      figures: [
        { metric: 0, values: [49, 51] },
        { metric: 1, values: [null, null] },
      ],
    },
    details: [],
    testbed: { sentence: "", rows: [], hosts: [] },
  };
}
