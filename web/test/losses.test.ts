import { expect, test } from "vitest";
import { describe } from "../src/losses/words";

test("a line of losses is described from the lowest load to the highest", () => {
  const point = (load: number, loss: number) => ({ load, loss, low: null, high: null, shown: `${loss}`, slices: 3 });
  const line = { label: "IPv4", counted: "IPv4: 6 slices", points: [point(980, 0), point(1020, 1.96)] };
  expect(describe(line)).toBe("IPv4 from 0 % at 980 to 1.96 % at 1020");
  expect(describe({ ...line, points: [] })).toBe("IPv4 from nothing to nothing");
});
