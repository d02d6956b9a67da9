import { expect, test } from "vitest";
import { rests } from "../src/explorer/rests";
import { pieces } from "../src/runs/Detail";
import { page } from "./page";

test("a line ends where a figure is missing, and begins again", () => {
  const at = (figure: number, place: number) => `${place} ${figure}`;
  expect(pieces([1, 2, null, 3, null, null, 4, 5], at)).toBe("M0 1L1 2M3 3h0M6 4L7 5");
  expect(pieces([null, null], at)).toBe("");
  expect(pieces([7], at)).toBe("M0 7h0");
});

test("what a comparison rests on is told in words: pairs, p, headers, or why there is nothing", () => {
  const [one] = page().comparisons;
  expect(rests({ ...one!, headers: "headers explain -8.4 %" })).toBe(
    "8 pairs; p of no difference 0.010, adjusted for the number of comparisons; headers explain -8.4 %",
  );
  expect(rests({ ...one!, pairs: 0, adjusted_p: null, reason: "ipv6: no arrivals" })).toBe("nothing to compare: ipv6: no arrivals");
});
