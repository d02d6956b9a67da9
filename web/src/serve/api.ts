// Requests to the server, and its change events.
import type { Changed, Compared, FleetListing, FleetPage, Headline, Listing, Page, Refused, RunDetail } from "../document";

async function ask<T>(path: string, asked: Record<string, string> = {}): Promise<T> {
  const answer = await fetch(`${path}?${new URLSearchParams(asked)}`, { headers: { accept: "application/json" } });
  const body: unknown = await answer.json();
  if (!answer.ok) throw new Error((body as Refused).error ?? `the server answered ${answer.status}`);
  return body as T;
}

export const campaigns = () => ask<Listing>("/api/campaigns");
export const campaign = (name: string) => ask<Page>("/api/campaign", { name });
export const headline = (name: string) => ask<Headline>("/api/headline", { name });
export const compared = (a: string, b: string) => ask<Compared>("/api/compare", { a, b });
export const runDetail = (name: string, block: number, position: number) =>
  ask<RunDetail>("/api/run", { name, block: String(block), position: String(position) });
/** The campaigns of the fleet store; `null` where the server has none. */
export const fleet = () => ask<FleetListing | null>("/api/fleet");
export const fleetCampaign = (name: string, from: number, failed: boolean) =>
  ask<FleetPage>("/api/fleet/campaign", { name, from: String(from), failed: String(failed) });

/** Milliseconds before a failed request is repeated. */
export const AGAIN_MS = 3000;

/** Calls `changed` whenever the record changes, or the folder where no record is named. Returns a function that stops this. */
export function follow(name: string | undefined, changed: (now: Changed) => void, lost: (isLost: boolean) => void): () => void {
  const address = "/api/events" + (name === undefined ? "" : `?${new URLSearchParams({ name })}`);
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  };
  const start = () => {
    stop();
    const opened = (source = new EventSource(address));
    opened.addEventListener("changed", (event) => changed(JSON.parse(event.data as string) as Changed));
    opened.addEventListener("open", () => lost(false));
    opened.addEventListener("error", () => {
      lost(true);
      // The browser reconnects by itself, except where the server refused.
      if (opened === source && opened.readyState === EventSource.CLOSED) timer = setTimeout(start, AGAIN_MS);
    });
  };
  // A browser has about six connections to a server for all tabs: hidden tabs close theirs.
  const seen = () => (document.hidden ? stop() : start());
  document.addEventListener("visibilitychange", seen);
  seen();
  return () => {
    document.removeEventListener("visibilitychange", seen);
    stop();
  };
}
