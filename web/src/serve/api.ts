// What the server has, and what it says when that changes.
import type { Changed, Compared, Listing, Page, Refused, RunDetail } from "../document";

async function ask<T>(path: string, asked: Record<string, string> = {}): Promise<T> {
  const answer = await fetch(`${path}?${new URLSearchParams(asked)}`, { headers: { accept: "application/json" } });
  const body: unknown = await answer.json();
  if (!answer.ok) throw new Error((body as Refused).error ?? `the server answered ${answer.status}`);
  return body as T;
}

export const campaigns = () => ask<Listing>("/api/campaigns");
export const campaign = (name: string) => ask<Page>("/api/campaign", { name });
export const compared = (a: string, b: string) => ask<Compared>("/api/compare", { a, b });
export const runDetail = (name: string, block: number, position: number) =>
  ask<RunDetail>("/api/run", { name, block: String(block), position: String(position) });

/** Calls whenever the record, or the folder where none is named, has changed; gives what ends it. */
export function follow(name: string | undefined, changed: (count: number) => void, lost: (isLost: boolean) => void): () => void {
  const source = new EventSource("/api/events" + (name === undefined ? "" : `?${new URLSearchParams({ name })}`));
  source.addEventListener("changed", (event) => changed((JSON.parse(event.data as string) as Changed).count));
  source.addEventListener("open", () => lost(false));
  // The browser connects again by itself.
  source.addEventListener("error", () => lost(true));
  return () => source.close();
}
