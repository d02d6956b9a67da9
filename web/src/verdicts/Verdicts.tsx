// Verdicts: a sentence for each group of comparisons, then a matrix of all.
import { Fragment } from "preact";
import type { ControlView, Page } from "../document";
import { explore } from "../explorer/Explorer";
import { stateFor } from "../explorer/select";
import { mark, tone } from "./Sign";

/** Of all pairs, or of one. */
interface Props {
  page: Page;
  pair?: number;
}

export function Sentences({ page, pair }: Props) {
  return (
    <ul class="sentences">
      {page.sentences.filter((sentence) => pair === undefined || sentence.pair === pair).map((sentence) => {
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
  );
}

/** The subject, and the rest. */
function split(text: string): [string, string] {
  const place = text.indexOf(":");
  return place < 0 ? [text, ""] : [text.slice(0, place), text.slice(place)];
}

/** What the signs of the matrix mean. */
export function MatrixLegend() {
  return (
    <p class="quiet">
      The better arm and by how much; ▲ the arm compared, ▼ the one compared with, one sign to three by how far the difference
      is beyond the margin, in parentheses where it is within it; = equivalent, 0 none seen, ? inconclusive, - nothing to compare. A cell leads to its graph. A
      control is one arm measured against itself, ± half of the 95 % interval: chance and the method make this difference, and no verdict depends on it.
    </p>
  );
}

/** The verdicts by size: of one pair, or of all with a heading for each. */
export function MatrixTable({ page, pair }: Props) {
  const { columns, rows } = page.matrix;
  // Programs have no sizes.
  const hasSizes = columns.some((size) => size > 0);
  const pairs = page.pairs.map((_, place) => place).filter((place) => (pair === undefined || place === pair) && rows.some((row) => row.pair === place));
  if (pairs.length === 0) return null;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={hasSizes ? "All verdicts by size" : "All verdicts"}>
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">{pairs.length === 1 ? page.pairs[pairs[0]!] : hasSizes ? "size in bytes" : "compared"}</th>
            {columns.map((size) => <th scope="col" key={size}>{hasSizes ? `${size} B` : "verdict"}</th>)}
          </tr>
        </thead>
        {pairs.map((place) => (
          <tbody key={place}>
            {pairs.length > 1 && <tr class="pair"><th scope="rowgroup" colSpan={columns.length + 1}>{page.pairs[place]}</th></tr>}
            {rows.filter((row) => row.pair === place).map((row) => (
              <Fragment key={row.label}>
                <tr>
                  <th scope="row">{row.label}</th>
                  {row.cells.map((cell, column) => <Verdict key={column} page={page} cell={cell} about={`${page.pairs[place]}, ${row.label}${hasSizes ? `, ${columns[column]} bytes` : ""}`} />)}
                </tr>
                {row.controls.map((control) => <Control key={control.arms} control={control} sizes={columns} />)}
              </Fragment>
            ))}
          </tbody>
        ))}
      </table>
    </div>
  );
}

/** One arm against itself. */
function Control({ control, sizes }: { control: ControlView; sizes: readonly number[] }) {
  return (
    <tr class="control">
      <th scope="row">control {control.arms}</th>
      {sizes.map((size) => <td key={size} title={size === control.size ? control.shown : undefined}>{size === control.size ? control.sign : ""}</td>)}
    </tr>
  );
}

function Verdict({ page, cell, about }: { page: Page; cell: number | null; about: string }) {
  const comparison = cell === null ? undefined : page.comparisons[cell];
  if (comparison === undefined) return <td />;
  const said = `${about}: ${comparison.words}, difference ${comparison.shown}`;
  return (
    <td class={tone(comparison)}>
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
}
