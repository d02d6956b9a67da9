import { expect, test } from "vitest";
import { linkLines } from "../src/testbed/links";
import { clipped, several, wrapped } from "../src/testbed/words";

const mechanisms = ["native", "6in4", "6to4", "6rd", "gre4", "gre6", "4in6", "nat64", "siit", "464xlat", "wireguard4", "wireguard6"];

test("of many mechanisms the first are named and the others counted", () => {
  expect(several(["6in4"], 28)).toBe("6in4");
  expect(several(mechanisms, 28)).toBe("native, 6in4 and 10 more");
  for (const letters of [20, 28, 40]) {
    const text = several(mechanisms, letters);
    const shown = text.split(" and ")[0]!.split(", ");
    expect(text.length).toBeLessThanOrEqual(letters);
    expect(mechanisms.slice(0, shown.length)).toEqual(shown);
    expect(shown.length + Number(/and (\d+) more/.exec(text)![1])).toBe(mechanisms.length);
  }
});

test("facts of a link break between facts, and none is lost", () => {
  const facts = ["delay 5 ms", "loss 0.1 %", "10 Mbit/s", "MTU 1500", "offloads off"];
  const lines = wrapped(facts, 28);
  expect(lines.join(" ")).toBe(facts.join(", "));
  expect(lines.every((line) => line.length <= 28)).toBe(true);
  expect(clipped("receiver (server of http, dns)", 23)).toBe("receiver (server of ht…");
});

test("a link is told by how packets cross it, and else by its rate", () => {
  expect(linkLines({ mechanisms: [], facts: ["50 Mbit/s", "MTU 1500", "offloads off"] })).toEqual({
    above: "50 Mbit/s",
    below: ["MTU 1500, offloads off"],
  });
  expect(linkLines({ mechanisms: ["6in4"], facts: ["10 Mbit/s"] })).toEqual({ above: "6in4", below: ["10 Mbit/s"] });
});
