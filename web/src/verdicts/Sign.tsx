// A verdict as a sign: by its words, its mark, and by colour.
import type { ComparisonView, Outcome } from "../document";

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
export function tone({ outcome, strength }: { outcome: Outcome; strength: number }): string {
  return strength > 0 ? `${outcome} strength-${strength}` : outcome;
}

export function Sign({ comparison, text }: { comparison: ComparisonView; text: string }) {
  return (
    <span class={`sign ${tone(comparison)}`}>
      {comparison.strength > 0 && <span aria-hidden="true">{mark(comparison)} </span>}
      {text}
    </span>
  );
}
