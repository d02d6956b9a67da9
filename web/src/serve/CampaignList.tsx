// The records of a folder.
import { useSignal } from "@preact/signals";
import type { CampaignRow, Listing } from "../document";
import { open } from "../navigation";

/** A record that changed within this many seconds counts as in progress. */
const RECENT_S = 30;

export function CampaignList({ listing }: { listing: Listing }) {
  const chosen = useSignal<readonly string[]>([]);
  const choose = (name: string, on: boolean) => {
    const others = chosen.value.filter((known) => known !== name);
    chosen.value = on ? [...others, name].slice(-2) : others;
  };
  const [a, b] = chosen.value;
  return (
    <section aria-labelledby="campaigns-title">
      <h1 id="campaigns-title">Campaigns in {listing.folder}</h1>
      {listing.campaigns.length === 0 && <p>There is no record here yet: <code>stacklab run</code> makes one.</p>}
      <p>
        <button type="button" disabled={a === undefined || b === undefined} onClick={() => open({ a: a!, b: b! })}>
          compare the two that are ticked
        </button>
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Campaigns">
        <table>
          <thead>
            <tr>
              <th scope="col">compare</th>
              <th scope="col">record</th>
              <th scope="col">study</th>
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
  if (row.error !== null) {
    return (
      <tr>
        <td />
        <th scope="row"><code>{row.name}</code></th>
        <td colSpan={4}>{row.error}</td>
      </tr>
    );
  }
  return (
    <tr>
      <td>
        <input type="checkbox" checked={on} aria-label={`compare ${row.name}`} onChange={(event) => choose(row.name, event.currentTarget.checked)} />
      </td>
      <th scope="row"><button type="button" onClick={() => open({ c: row.name })}>{row.name}</button></th>
      <td>{row.title}</td>
      <td>{row.started}</td>
      <td class="number">{row.runs}</td>
      <td>{row.changed_s < RECENT_S ? <span class="live">just now</span> : ago(row.changed_s)}</td>
    </tr>
  );
}

function ago(seconds: number): string {
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}
