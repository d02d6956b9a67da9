// The figures of the graph.
import { Swatch } from "../chart/Chart";
import type { ComparisonView, Page } from "../document";
import { theme } from "../theme";
import { Sign } from "../verdicts/Sign";
import type { Shown } from "./select";

export function FigureTable({ page, shown }: { page: Page; shown: Shown }) {
  const compared = shown.rows.some((row) => row.comparisons.length > 0);
  const several = Math.max(0, ...shown.rows.map((row) => row.comparisons.length)) > 1;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Figures of ${shown.metric.name}`}>
      <table class="figures">
        <caption>
          {shown.metric.name.replaceAll("_", " ")} in {shown.metric.unit}: mean ± half its 95 % interval, (runs)
        </caption>
        <thead>
          <tr>
            <th scope="col">{shown.axis.name.replaceAll("_", " ")}</th>
            {shown.lines.map((line, number) => (
              <th scope="col" key={line.label}>
                <Swatch number={number} theme={theme.value} /> {line.label}
              </th>
            ))}
            {compared && <th scope="col">difference, {shown.metric.difference_unit} [95 %]</th>}
            {compared && <th scope="col">verdict</th>}
          </tr>
        </thead>
        <tbody>
          {shown.rows.map((row) => (
            <tr key={row.label}>
              <th scope="row">{row.label}</th>
              {row.cells.map((cell, place) => (
                <td key={place} class="number" data-cell={cell?.cell} title={cell?.missing ?? undefined}>
                  {cell === undefined ? "-" : cell.shown}
                  {cell !== undefined && cell.n > 0 && <span class="quiet"> ({cell.n})</span>}
                </td>
              ))}
              {compared && (
                <td class="number">
                  {row.comparisons.map((c) => <div key={c.baseline} title={c.headers ?? undefined}>{c.shown}</div>)}
                </td>
              )}
              {compared && (
                <td>
                  {row.comparisons.map((c) => (
                    <div key={c.baseline} title={c.reason ?? undefined}>
                      <Sign comparison={c} text={c.words} />
                      {several && <span class="quiet"> {where(page, c)}</span>}
                    </div>
                  ))}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.between.length > 0 && (
        <ul>
          {shown.between.map((c) => (
            <li key={`${c.baseline} ${c.candidate}`}>
              {where(page, c)}: {c.shown} {shown.metric.difference_unit}, <Sign comparison={c} text={c.words} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** What a comparison is of, where a row has several. */
function where(page: Page, comparison: ComparisonView): string {
  const levels = page.cells[comparison.baseline]!.levels;
  const others = page.factors.flatMap((factor, place) =>
    factor.levels.length > 1 && place !== comparison.factor && factor.name !== "size" ? [factor.labels[levels[place]!]!] : [],
  );
  return [comparison.arms, ...others].join(", ");
}
