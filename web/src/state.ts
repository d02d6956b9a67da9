// What is shown is in the URL, so that it can be shared: one signal of names and texts, read from the hash.
import { signal } from "@preact/signals";

export type State = Readonly<Record<string, string>>;

/** Reads `#metric=rtt&size=128`; anything else is ignored. */
export function parse(hash: string): State {
  return Object.fromEntries(new URLSearchParams(hash.replace(/^#/, "")));
}

/** Writes it; empty texts are left out. */
export function print(state: State): string {
  const kept = Object.entries(state).filter(([, text]) => text !== "");
  return new URLSearchParams(kept).toString();
}

const inBrowser = typeof location !== "undefined";

export const state = signal<State>(inBrowser ? parse(location.hash) : {});

/** Changes some entries; an empty text removes one. */
export function change(some: Record<string, string>): void {
  state.value = { ...state.value, ...some };
  history.replaceState(null, "", "#" + print(state.value));
}

/** Whether a switch is on; `initially` where the URL does not say. */
export function isOn(name: string, initially: boolean): boolean {
  const text = state.value[name];
  return text === undefined || text === "" ? initially : text === "1";
}

if (inBrowser) {
  addEventListener("hashchange", () => {
    state.value = parse(location.hash);
  });
}
