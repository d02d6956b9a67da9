import { expect, test } from "vitest";
import { tops } from "../src/testbed/TallDrawing";

test("hosts below each other leave room for the lines of each link", () => {
  // A box is 66 high, a line of text 17, and one line is left empty.
  expect(tops([2])).toEqual([8, 125, 199]);
  expect(tops([0, 3])).toEqual([8, 91, 225, 299]);
  expect(tops([])).toEqual([8, 82]);
});
