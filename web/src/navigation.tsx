// Going from one campaign to another.
import { change, state } from "./state";

/** Opens what is chosen, and drops the choices made for the last one; the theme stays. */
export function open(chosen: Record<string, string>): void {
  const dropped = Object.fromEntries(Object.keys(state.value).filter((name) => name !== "theme").map((name) => [name, ""]));
  change({ ...dropped, ...chosen });
}

/** The way back to the list of campaigns. */
export function Back() {
  return <p><button type="button" onClick={() => open({})}>all campaigns</button></p>;
}
