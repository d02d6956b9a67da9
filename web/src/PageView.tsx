// One campaign, from the verdicts to single runs.
import type { Page } from "./document";
import { Explorer } from "./explorer/Explorer";
import { Losses } from "./losses/Losses";
import { Facts, Testbed } from "./testbed/Testbed";
import { Runs, type Fetch } from "./runs/Runs";
import { Block } from "./serve/Block";
import { isLong } from "./verdicts/columns";
import { Differences } from "./verdicts/Differences";
import { Overview } from "./verdicts/Overview";
import { Why } from "./why/Why";

export function PageView({ page, fetch }: { page: Page; fetch: Fetch }) {
  return (
    <>
      <h1>{page.title}</h1>
      {page.metrics.length === 0 && (
        <>
          <Facts facts={page.facts} />
          <p class="quiet">{page.legend}</p>
        </>
      )}
      {!page.finished && <p class="unfinished">Not finished: some comparisons have not been measured to their end.</p>}
      {isLong(page) ? <Overview page={page} /> : <Differences page={page} />}
      {page.instructions.map((block, place) => <Block key={place} block={block} />)}
      <Why page={page} />
      {page.rfc8219.map((block, place) => <Block key={place} block={block} />)}
      <Losses page={page} />
      {page.metrics.length > 0 && <Measured page={page} fetch={fetch} />}
    </>
  );
}

/** What a campaign measured: none of it is there for instructions alone. */
function Measured({ page, fetch }: { page: Page; fetch: Fetch }) {
  return (
    <>
      <Explorer page={page} />
      <section aria-labelledby="campaign-title">
        <h2 id="campaign-title">Campaign</h2>
        <Facts facts={page.facts} />
        <p class="quiet">{page.legend}</p>
        {page.notes.length > 0 && (
          <>
            <h3>Notes</h3>
            <ul>{page.notes.map((note, place) => <li key={place}>{note}</li>)}</ul>
          </>
        )}
      </section>
      <Testbed page={page} />
      <Runs page={page} fetch={fetch} />
    </>
  );
}
