// Which pairs and metrics need a separate table.
import type { Page } from "../document";

/** More rows than these, of several pairs, do not fit a screen. */
const ROWS = 24;

export function isLong(page: Page): boolean {
  return page.pairs.length > 1 && page.forest.length > ROWS;
}

/** The metrics by which any pair differs or may differ, and those by which none does: they need no column. */
export function columns(page: Page): { metrics: string[]; alike: string[] } {
  const isAlike = (metric: string) => page.forest.filter((row) => row.metric === metric).every(({ outcome }) => outcome === "equivalent" || outcome === "unseen");
  const all = [...new Set(page.forest.map((row) => row.metric))];
  return { metrics: all.filter((metric) => !isAlike(metric)), alike: all.filter(isAlike) };
}
