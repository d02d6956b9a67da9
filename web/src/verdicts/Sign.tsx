// A verdict as a sign: by its words, its mark, and by colour.
import type { ComparisonView } from "../document";

/** Triangles point up for the arm compared, down for the one compared with; as many as the difference is large. */
export function mark(comparison: ComparisonView): string {
  switch (comparison.outcome) {
    case "candidate":
      return "▲".repeat(comparison.strength);
    case "baseline":
      return "▼".repeat(comparison.strength);
    case "equivalent":
      return "=";
    case "unseen":
      return "0";
    case "inconclusive":
      return "?";
    case "nothing":
      return "-";
  }
}

/** The class that gives its colour: which arm, and how strong. */
export function tone(comparison: ComparisonView): string {
  return comparison.strength > 0 ? `${comparison.outcome} strength-${comparison.strength}` : comparison.outcome;
}

export function Sign({ comparison, text }: { comparison: ComparisonView; text: string }) {
  return (
    <span class={`sign ${tone(comparison)}`}>
      {comparison.strength > 0 && <span aria-hidden="true">{mark(comparison)} </span>}
      {text}
    </span>
  );
}
