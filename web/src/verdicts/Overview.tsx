// A record that compares many pairs: a row for each pair and a column for each metric, with the details of a pair folded.
import type { ControlView, ForestRow, Outcome, Page } from "../document";
import { columns } from "./columns";
import { Forest, ForestLegend } from "./Forest";
import { Levels } from "./Levels";
import { tone } from "./Sign";
import { MatrixTable, Sentences } from "./Verdicts";

export function Overview({ page }: { page: Page }) {
  const { metrics, alike } = columns(page);
  return (
    <>
      <section aria-labelledby="overview-title">
        <h2 id="overview-title">Verdicts</h2>
        <p class="quiet">
          {page.answered}. Each difference{page.matrix.columns.some((size) => size > 0) ? " over all sizes" : ""}; orange where the first arm is better, blue where the second one is, grey where
          they are equivalent (=) or neither had an event (0); ? is inconclusive. A control
          is one arm measured against itself: chance and the method make this difference, and no verdict depends on it.
        </p>
        <div class="scroll" tabIndex={0} role="region" aria-label="Verdicts of each pair">
          <table class="matrix overview">
            <thead>
              <tr>
                <th scope="col">compared</th>
                {metrics.map((metric) => <th scope="col" key={metric}>{metric}</th>)}
              </tr>
            </thead>
            <tbody>
              {page.pairs.map((arms, pair) => (
                <tr key={arms}>
                  <th scope="row"><a href={`#pair-${pair}`} onClick={(event) => unfold(event, pair)}>{arms}</a></th>
                  {metrics.map((metric) => (
                    <td key={metric}>{page.forest.filter((row) => row.pair === pair && row.metric === metric).map((row) => <Short key={row.transport} row={row} />)}</td>
                  ))}
                </tr>
              ))}
              {controls(page).map((arms) => (
                <tr key={arms} class="control">
                  <th scope="row">control {arms}</th>
                  {metrics.map((metric) => <td key={metric}><Controls page={page} metric={metric} arms={arms} /></td>)}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {alike.length > 0 && <p class="quiet">Equivalent in every pair, or none seen: {alike.join(", ")}.</p>}
        {page.answer && (
          <details>
            <summary>In words</summary>
            <p class="answer">{page.answer}</p>
          </details>
        )}
      </section>
      <Levels page={page} />
      <section aria-labelledby="pairs-title">
        <h2 id="pairs-title">Each pair</h2>
        <ForestLegend pairs={page.pairs} />
        {page.pairs.map((arms, pair) => (
          <details key={arms} id={`pair-${pair}`} class="pair">
            <summary>{arms}</summary>
            <Forest rows={page.forest.filter((row) => row.pair === pair)} arms={arms} />
            <MatrixTable page={page} pair={pair} />
            <Sentences page={page} pair={pair} />
          </details>
        ))}
      </section>
    </>
  );
}

/** The arms that were measured against themselves. */
function controls(page: Page): string[] {
  return [...new Set(page.forest.flatMap((row) => row.controls.map((control) => control.arms)))];
}

/** The control of a metric, once for each transport. */
function Controls({ page, metric, arms }: { page: Page; metric: string; arms: string }) {
  const shown = new Map<string, ControlView>();
  for (const row of page.forest.filter((row) => row.metric === metric)) {
    for (const control of row.controls.filter((control) => control.arms === arms)) shown.set(row.transport ?? "", control);
  }
  return <>{[...shown].map(([transport, control]) => <div key={transport} title={control.shown}>{transport} {control.sign}</div>)}</>;
}

/** Transport and difference; the verdict by colour and in the title. */
function Short({ row }: { row: ForestRow }) {
  const difference = row.whole === null ? "-" : row.shown.split(" [")[0];
  const signs: Partial<Record<Outcome, string>> = { inconclusive: "?", equivalent: "=", unseen: "0", nothing: "-" };
  return (
    <div class={tone(row)} title={`${row.shown}: ${row.words}`}>
      {row.transport} {signs[row.outcome] ?? difference}
      <span class="hidden">: {row.shown}, {row.words}</span>
    </div>
  );
}

/** The address is the state of the page, so that the link's own way is not taken. */
function unfold(event: Event, pair: number): void {
  event.preventDefault();
  const details = document.getElementById(`pair-${pair}`) as HTMLDetailsElement;
  details.open = true;
  details.scrollIntoView();
}
