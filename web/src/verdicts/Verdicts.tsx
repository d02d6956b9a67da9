// Verdicts: a sentence for each group of comparisons, then a matrix of all.
import type { Page } from "../document";
import { explore } from "../explorer/Explorer";
import { stateFor } from "../explorer/select";
import { mark, tone } from "./Sign";

export function Sentences({ page }: { page: Page }) {
  if (page.sentences.length === 0) return null;
  return (
    <section aria-labelledby="verdict-title">
      <h2 id="verdict-title">Verdict</h2>
      <ul class="sentences">
        {page.sentences.map((sentence) => {
          const [subject, rest] = split(sentence.text);
          return (
            <li key={sentence.text} class={sentence.differs ? "differs" : ""}>
              <a
                href="#explorer"
                onClick={(event) => {
                  event.preventDefault();
                  explore(stateFor(page, page.comparisons[sentence.comparison]!));
                }}
              >
                {subject}
              </a>
              {rest}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** The subject, and the rest. */
function split(text: string): [string, string] {
  const place = text.indexOf(":");
  return place < 0 ? [text, ""] : [text.slice(0, place), text.slice(place)];
}

export function MatrixTable({ page }: { page: Page }) {
  const { columns, rows } = page.matrix;
  if (rows.length === 0) return null;
  return (
    <section aria-labelledby="matrix-title">
      <h2 id="matrix-title">All verdicts by size</h2>
      <p class="quiet">
        The better arm and by how much; ▲ the arm compared, ▼ the one compared with, one sign to three by how far the difference
        is beyond the margin, in parentheses where it is within it; = equivalent, 0 none seen, ? inconclusive, - nothing to compare. A cell leads to its graph.
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="All verdicts by size">
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">size in bytes</th>
              {columns.map((size) => <th scope="col" key={size}>{size}</th>)}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.label}>
                <th scope="row">{row.label}</th>
                {row.cells.map((place, column) => {
                  const comparison = place === null ? undefined : page.comparisons[place];
                  if (comparison === undefined) return <td key={column} />;
                  const said = `${row.label}, ${columns[column]} bytes: ${comparison.words}, difference ${comparison.shown}`;
                  return (
                    <td key={column} class={tone(comparison)}>
                      <button type="button" title={said} onClick={() => explore(stateFor(page, comparison))}>
                        {comparison.strength > 0 ? (
                          <>
                            <span class="mark">{mark(comparison)}</span> {comparison.sign}
                          </>
                        ) : (
                          comparison.sign
                        )}
                        <span class="hidden">: {said}</span>
                      </button>
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
