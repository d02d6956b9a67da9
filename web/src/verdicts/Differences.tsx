// A record that compares few pairs: the answer, all verdicts, and each difference drawn.
import type { Page } from "../document";
import { Forest, ForestLegend } from "./Forest";
import { Levels } from "./Levels";
import { MatrixLegend, MatrixTable, Sentences } from "./Verdicts";

export function Differences({ page }: { page: Page }) {
  return (
    <>
      {page.answer && <p class="answer">{page.answer}</p>}
      <Levels page={page} />
      {page.matrix.rows.length > 0 && (
        <section aria-labelledby="matrix-title">
          <h2 id="matrix-title">Verdicts</h2>
          <MatrixTable page={page} />
          <details>
            <summary>What the signs mean</summary>
            <MatrixLegend />
          </details>
        </section>
      )}
      {page.forest.some((row) => row.whole !== null) && (
        <section aria-labelledby="forest-title">
          <h2 id="forest-title">Differences</h2>
          <ForestLegend pairs={page.pairs} />
          {page.pairs.map((arms, pair) => <Forest key={arms} rows={page.forest.filter((row) => row.pair === pair)} arms={arms} />)}
        </section>
      )}
      {page.sentences.length > 0 && (
        <section aria-labelledby="verdict-title">
          <h2 id="verdict-title">In words</h2>
          <Sentences page={page} />
        </section>
      )}
    </>
  );
}
