// The basis of a comparison in words: pairs, p, headers.
import type { ComparisonView } from "../document";

/** `8 pairs; p 0.0024, adjusted; headers explain …`. */
export function rests({ reason, pairs, adjusted_p, headers }: ComparisonView): string {
  const parts = [reason === null ? `${pairs} ${pairs === 1 ? "pair" : "pairs"}` : `nothing to compare: ${reason}`];
  if (adjusted_p !== null) parts.push(`p of no difference ${adjusted_p}, adjusted for the number of comparisons`);
  if (headers !== null) parts.push(headers);
  return parts.join("; ");
}
