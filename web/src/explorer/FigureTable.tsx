// The figures of the graph.
import { Swatch } from "../chart/Chart";
import type { ComparisonView, Page } from "../document";
import { theme } from "../theme";
import { Sign } from "../verdicts/Sign";
import { ArmTable } from "./ArmTable";
import { rests } from "./rests";
import { isWide, settings, type Shown } from "./select";

export function FigureTable({ page, shown }: { page: Page; shown: Shown }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Figures of ${shown.metric.label}`}>
      {isWide(shown) ? <ArmTable page={page} shown={shown} /> : <LevelTable page={page} shown={shown} />}
      {shown.between.length > 0 && (
        <ul class="between">
          {shown.between.map((c) => (
            <li key={keyOf(c)}>
              {where(page, c)}: {c.shown} {shown.metric.difference_unit}, <Sign comparison={c} text={c.words} />
            </li>
          ))}
        </ul>
      )}
      <Remarks page={page} shown={shown} />
    </div>
  );
}

/** Levels are rows and arms are columns. */
function LevelTable({ page, shown }: { page: Page; shown: Shown }) {
  const compared = shown.rows.some((row) => row.comparisons.length > 0);
  const several = Math.max(0, ...shown.rows.map((row) => row.comparisons.length)) > 1;
  return (
    <table class="figures stacked">
      <caption>
        {shown.metric.label} in {shown.metric.unit}: mean ± half its 95 % interval, (runs)
      </caption>
      <thead>
        <tr>
          <th scope="col">{shown.axis.label}</th>
          {shown.lines.map((line) => (
            <th scope="col" key={line.label}>
              <Swatch number={line.look} theme={theme.value} /> {line.label}
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
              <td key={place} class="number" data-cell={cell?.cell} data-label={shown.lines[place]?.label}>
                {cell === undefined ? "-" : cell.shown}
                {cell !== undefined && cell.n > 0 && <span class="quiet"> ({cell.n})</span>}
              </td>
            ))}
            {compared && (
              <td class="number" data-label={`difference, ${shown.metric.difference_unit} [95 %]`}>
                {row.comparisons.map((c) => <div key={keyOf(c)}>{c.shown}</div>)}
              </td>
            )}
            {compared && (
              <td data-label="verdict">
                {row.comparisons.map((c) => (
                  <div key={keyOf(c)}>
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
  );
}

/** One candidate may be compared with several others, and several with one. */
function keyOf({ baseline, candidate, factor }: ComparisonView): string {
  return `${factor} ${baseline} ${candidate}`;
}

/** What there is no room for in the table: why figures are missing, and of each comparison its pairs, p and headers. */
function Remarks({ page, shown }: { page: Page; shown: Shown }) {
  const missing = shown.rows.flatMap(({ label, cells }) =>
    cells.flatMap((cell, place) => {
      if (cell === undefined || cell.missing === null) return [];
      const text = `${cell.n > 0 ? "some runs have" : "there is"} no figure: ${cell.missing}`;
      return [{ name: `${label}, ${shown.lines[place]!.label}`, text }];
    }),
  );
  const comparisons = [
    ...shown.rows.flatMap((row) => row.comparisons.map((c) => ({ c, at: `${row.label}, ` }))),
    ...shown.between.map((c) => ({ c, at: "" })),
  ];
  const about = [
    ...(missing.length > 0 ? ["figures that are missing"] : []),
    ...(comparisons.length > 0 ? ["what comparisons rest on"] : []),
  ];
  if (about.length === 0) return null;
  return (
    <details class="remarks">
      <summary>{about.join(", ")}</summary>
      <dl class="facts">
        {missing.map(({ name, text }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
        {comparisons.map(({ c, at }) => (
          <div key={keyOf(c)}>
            <dt>{at}{where(page, c)}</dt>
            <dd>{rests(c)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** What a comparison is of, where a row has several. */
function where(page: Page, comparison: ComparisonView): string {
  const others = page.factors.flatMap((factor, place) =>
    factor.levels.length > 1 && place !== comparison.factor && factor.name !== "size" ? [place] : [],
  );
  return [comparison.arms, settings(page, page.cells[comparison.baseline]!.levels, others)].filter(Boolean).join(", ");
}
