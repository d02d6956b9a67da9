// An answer that is asked for again while somebody looks at it.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { AGAIN_MS } from "./api";
import { repeatedly } from "./repeatedly";

/** How often an answer is asked for that changes, and one that does not. */
export const CHANGES_MS = 3000;
export const RESTS_MS = 30_000;

/** Asks at once, and again as often as the answer may be another one. Returns a function that stops this. */
export function poll<T>(ask: () => Promise<T>, changes: (found: T) => boolean, found: (answer: T) => void, failed: (reason: string) => void): () => void {
  let isOver = false;
  const polling = repeatedly(async () => {
    // Nobody looks: it asks when the tab is shown again.
    if (document.hidden) return undefined;
    try {
      const answer = await ask();
      if (isOver) return undefined;
      found(answer);
      failed("");
      return changes(answer) ? CHANGES_MS : RESTS_MS;
    } catch (error) {
      if (!isOver) failed(String(error));
      return AGAIN_MS;
    }
  });
  const seen = () => {
    if (!document.hidden) polling.now();
  };
  document.addEventListener("visibilitychange", seen);
  return () => {
    isOver = true;
    document.removeEventListener("visibilitychange", seen);
    polling.end();
  };
}

/** The last answer, and why there is no newer one. It is asked for anew when one of `inputs` changes. */
export function usePolled<T>(ask: () => Promise<T>, changes: (found: T) => boolean, inputs: readonly unknown[]): { found: Signal<T | undefined>; failed: Signal<string> } {
  const found = useSignal<T | undefined>(undefined);
  const failed = useSignal("");
  useEffect(() => poll(ask, changes, (answer) => (found.value = answer), (reason) => (failed.value = reason)), inputs);
  return { found, failed };
}
