// The records of a folder.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { CampaignRow, Headline, Listing } from "../document";
import { address, open } from "../navigation";
import { headline } from "./api";

/** What became of a campaign; it was interrupted where comparisons were not measured to their end. */
export function stateOf(running: boolean, finished: boolean | undefined): string {
  return running ? "running" : finished === undefined ? "…" : finished ? "ended" : "interrupted";
}

/** The older record is A, so that a comparison says what changed since. */
export function byAge(rows: readonly CampaignRow[], names: readonly string[]): string[] {
  const began = (name: string) => rows.find((row) => row.name === name)?.started ?? "";
  return [...names].sort((a, b) => (began(a) < began(b) ? -1 : began(a) > began(b) ? 1 : 0));
}

export function CampaignList({ listing }: { listing: Listing }) {
  const chosen = useSignal<readonly string[]>([]);
  const choose = (name: string, on: boolean) => {
    const others = chosen.value.filter((known) => known !== name);
    chosen.value = on ? [...others, name].slice(-2) : others;
  };
  const [a, b] = byAge(listing.campaigns, chosen.value);
  const title = <h1 id="campaigns-title">Campaigns in {listing.folder}</h1>;
  if (listing.campaigns.length === 0) {
    return <section aria-labelledby="campaigns-title">{title}<p>There is no record here yet: <code>stacklab run</code> makes one.</p></section>;
  }
  return (
    <section aria-labelledby="campaigns-title">
      {title}
      <p>
        <button type="button" disabled={a === undefined || b === undefined} onClick={() => open({ a: a!, b: b! })}>
          compare the two that are ticked
        </button>
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Campaigns">
        <table class="stacked campaigns">
          <thead>
            <tr>
              <th scope="col">compare</th>
              <th scope="col">record</th>
              <th scope="col">state</th>
              <th scope="col">study and answer</th>
              <th scope="col">began</th>
              <th scope="col">runs</th>
              <th scope="col">changed</th>
            </tr>
          </thead>
          <tbody>{listing.campaigns.map((row) => <Row key={row.name} row={row} on={chosen.value.includes(row.name)} choose={choose} />)}</tbody>
        </table>
      </div>
      {listing.unlisted > 0 && <p>{listing.unlisted} more are not listed.</p>}
    </section>
  );
}

interface RowProps {
  row: CampaignRow;
  on: boolean;
  choose: (name: string, on: boolean) => void;
}

function Row({ row, on, choose }: RowProps) {
  const said = useSignal<Headline | undefined>(undefined);
  useEffect(() => {
    if (row.error !== null) return;
    // A record whose answer cannot be made is still listed.
    headline(row.name).then((found) => (said.value = found), () => undefined);
  }, [row.name, row.runs, row.running]);
  if (row.error !== null) {
    return (
      <tr>
        <td class="tick" />
        <th scope="row"><code>{row.name}</code></th>
        <td colSpan={5} class="whole">{row.error}</td>
      </tr>
    );
  }
  return (
    <tr>
      <td class="tick">
        <input type="checkbox" checked={on} aria-label={`compare ${row.name}`} onChange={(event) => choose(row.name, event.currentTarget.checked)} />
      </td>
      <th scope="row"><a href={address({ c: row.name })}>{row.name}</a></th>
      <td class="state"><span class="live">{stateOf(row.running, said.value?.finished)}</span></td>
      <td class="whole">
        {row.title}
        {said.value?.text && <div class="quiet">{said.value.text}</div>}
      </td>
      <td data-label="began">{row.started}</td>
      <td class="number" data-label="runs">{row.runs}</td>
      <td data-label="changed">{ago(row.changed_s)}</td>
    </tr>
  );
}

function ago(seconds: number): string {
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}
