// One campaign, from the verdicts to single runs.
import type { Page } from "./document";
import { Explorer } from "./explorer/Explorer";
import { Facts, Testbed } from "./testbed/Testbed";
import { Runs, type Fetch } from "./runs/Runs";
import { Forest } from "./verdicts/Forest";
import { MatrixTable, Sentences } from "./verdicts/Verdicts";
import { Why } from "./why/Why";

export function PageView({ page, fetch }: { page: Page; fetch: Fetch }) {
  return (
    <>
      <h1>{page.title}</h1>
      {!page.finished && <p class="unfinished">Not finished: some comparisons have not been measured to their end.</p>}
      {page.answer && <p class="answer">{page.answer}</p>}
      <Forest page={page} />
      <Why page={page} />
      <Sentences page={page} />
      <MatrixTable page={page} />
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
