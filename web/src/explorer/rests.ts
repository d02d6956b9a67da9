// The basis of a comparison in words: pairs, p, headers.
import type { ComparisonView } from "../document";

/** `8 pairs; p 0.0024, adjusted; headers explain …`. */
export function rests({ outcome, reason, pairs, adjusted_p, headers }: ComparisonView): string {
  const why = outcome === "unseen" ? reason! : `nothing to compare: ${reason}`;
  const parts = [reason === null ? `${pairs} ${pairs === 1 ? "pair" : "pairs"}` : why];
  if (adjusted_p !== null) parts.push(`p of no difference ${adjusted_p}, adjusted for the number of comparisons`);
  if (headers !== null) parts.push(headers);
  return parts.join("; ");
}
