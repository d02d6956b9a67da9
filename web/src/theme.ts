// The theme, light or dark: the system's, or the one chosen.
import { computed, signal } from "@preact/signals";
import type { Theme } from "./chart/palette";
import { change, state } from "./state";

const dark = matchMedia("(prefers-color-scheme: dark)");
const systems = signal<Theme>(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => {
  systems.value = dark.matches ? "dark" : "light";
});

export const theme = computed<Theme>(() => {
  const chosen = state.value["theme"];
  return chosen === "light" || chosen === "dark" ? chosen : systems.value;
});

export function otherTheme(): void {
  change({ theme: theme.value === "dark" ? "light" : "dark" });
}
