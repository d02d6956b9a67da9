import { expect, test } from "vitest";
import { parse, print } from "../src/state";

test("what is in the URL is read back, whatever its letters", () => {
  const state = { metric: "rtt", "f.transport": "tcp & udp", c: "a=b#é.stacklab" };
  expect(parse("#" + print(state))).toEqual(state);
  expect(print({ metric: "", size: "128" })).toBe("size=128");
  expect(parse("")).toEqual({});
});
