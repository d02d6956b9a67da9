import { expect, test } from "vitest";
import { look, markers, outline, type Theme } from "../src/chart/palette";

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

test("every line can be told from the ground, and from the others without colour", () => {
  for (const [theme, ground] of [["light", "#ffffff"], ["dark", "#15181c"]] as [Theme, string][]) {
    for (let line = 0; line < 8; line++) {
      const [a, b] = [luminance(look(line, theme).colour), luminance(ground)].sort((x, y) => y - x);
      expect((a! + 0.05) / (b! + 0.05)).toBeGreaterThan(4.5);
    }
  }
  const looks = Array.from({ length: 32 }, (_, line) => look(line, "light"));
  expect(new Set(looks.map(({ marker, dash }) => marker + dash)).size).toBe(32);
});

test("every marker has an outline", () => {
  for (const marker of markers) expect(outline(marker, 10, 10, 4)).toMatch(/^M[-0-9. a-zA-Z]+$/);
});
