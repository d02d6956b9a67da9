// Going from one campaign to another.
import { change, print, state } from "./state";

/** Opens what is chosen, and drops the choices made for the last one; the theme stays. */
export function open(chosen: Record<string, string>): void {
  const dropped = Object.fromEntries(Object.keys(state.value).filter((name) => name !== "theme").map((name) => [name, ""]));
  change({ ...dropped, ...chosen });
}

/** The same as an address, for links. */
export function address(chosen: Record<string, string>): string {
  const { theme } = state.value;
  return "#" + print({ ...(theme === undefined ? {} : { theme }), ...chosen });
}

/** The way back to the list of campaigns. */
export function Back() {
  return <p><a href={address({})}>all campaigns</a></p>;
}
