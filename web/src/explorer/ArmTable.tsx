// The figures of many arms: arms are rows, and each figure has its comparisons below it.
import { Swatch } from "../chart/Chart";
import type { ComparisonView, Page } from "../document";
import { change } from "../state";
import { theme } from "../theme";
import { tone } from "../verdicts/Sign";
import { LIT, type Shown } from "./select";

export function ArmTable({ page, shown }: { page: Page; shown: Shown }) {
  const many = shown.lines.length > LIT;
  return (
    <table class="figures arms">
      <caption>
        {shown.metric.label} in {shown.metric.unit}: mean ± half its 95 % interval, (runs); below it the
        difference in {shown.metric.difference_unit} [95 %] from another arm
        {many && <>. {LIT} arms at most are in colour; an arm's button puts it in colour or takes it out</>}
      </caption>
      <thead>
        <tr>
          <th scope="col">arm</th>
          {shown.rows.map((row) => <th scope="col" class="number" key={row.label}>{row.label}</th>)}
        </tr>
      </thead>
      <tbody>
        {shown.lines.map((line, place) => (
          <tr key={line.label}>
            <th scope="row">
              {many ? (
                <button type="button" aria-pressed={line.look !== undefined} onClick={() => change({ lit: toggled(shown, place).join(".") })}>
                  <Swatch number={line.look} theme={theme.value} /> {line.label}
                </button>
              ) : (
                <><Swatch number={line.look} theme={theme.value} /> {line.label}</>
              )}
            </th>
            {shown.rows.map((row) => {
              const cell = row.cells[place];
              return (
                <td key={row.label} class="number" data-cell={cell?.cell}>
                  {cell === undefined ? "-" : cell.shown}
                  {cell !== undefined && cell.n > 0 && <span class="quiet"> ({cell.n})</span>}
                  {row.comparisons.filter((c) => c.candidate === cell?.cell).map((c) => <Against key={`${c.factor} ${c.baseline}`} page={page} comparison={c} />)}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Against({ page, comparison }: { page: Page; comparison: ComparisonView }) {
  const factor = page.factors[comparison.factor]!;
  const other = factor.alone[page.cells[comparison.baseline]!.levels[comparison.factor]!]!;
  return (
    <div class={`against ${tone(comparison)}`} title={comparison.words}>
      <span class="quiet">vs {other}</span> {comparison.shown} {comparison.sign}
    </div>
  );
}

/** The lines in colour once one of them is pressed, in the order in which they were. */
function toggled(shown: Shown, place: number): number[] {
  const lit = shown.lines.flatMap(({ look }, line) => (look === undefined ? [] : [{ look, line }]));
  const order = lit.sort((a, b) => a.look - b.look).map(({ line }) => line);
  return order.includes(place) ? order.filter((line) => line !== place) : [...order, place];
}
