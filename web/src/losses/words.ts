import type { LossLine } from "../document";

/** An arm in words: from the lowest load to the highest. */
export function describe(line: LossLine): string {
  const ends = [line.points[0], line.points.at(-1)];
  const words = ends.map((point) => (point ? `${point.shown} % at ${point.load}` : "nothing"));
  return `${line.label} from ${words.join(" to ")}`;
}
