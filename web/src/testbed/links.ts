// What is written at a link of a drawing.
import type { LinkView } from "../document";
import { clipped, several, wrapped } from "./words";

/** Letters that fit the space above or below a link. */
const ON_LINK = 28;

/** The line above a link (its mechanisms, else its first fact) and the lines below it. */
export function linkLines({ mechanisms, facts }: LinkView): { above: string; below: readonly string[] } {
  if (mechanisms.length > 0) return { above: several(mechanisms, ON_LINK), below: wrapped(facts, ON_LINK) };
  return { above: clipped(facts[0] ?? "", ON_LINK), below: wrapped(facts.slice(1), ON_LINK) };
}
