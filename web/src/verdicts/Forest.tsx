// The differences as a forest plot: each over all cells as a bar, single cells as dots, the margin as a band and what an
// arm differs from itself by as a darker one.
import type { ForestRow, Page } from "../document";
import { scale } from "../chart/scale";

const [WIDTH, LEFT, RIGHT, ROW] = [960, 330, 940, 30];

export function Forest({ page }: { page: Page }) {
  if (page.forest.length === 0) return null;
  const units = [...new Set(page.forest.map((row) => row.unit))];
  return (
    <section aria-labelledby="forest-title">
      <h2 id="forest-title">Differences</h2>
      <p class="quiet">
        Each difference over all cells with its 95 % interval, and a dot for each cell. The light band is the margin: a smaller
        difference counts as none. The dark band is what an arm differs from itself by, where that was measured.
      </p>
      {units.map((unit) => <Panel key={unit} unit={unit} rows={page.forest.filter((row) => row.unit === unit)} />)}
    </section>
  );
}

/** The widest that the axis shows: intervals, and the cells' middles. */
export function reach(rows: readonly ForestRow[]): number {
  const ends = rows.flatMap((row) => [row.whole.low, row.whole.high, ...row.margin, ...row.parts.map((part) => part.middle)]);
  return Math.max(...ends.map(Math.abs), 1e-9);
}

function Panel({ unit, rows }: { unit: string; rows: readonly ForestRow[] }) {
  const most = reach(rows);
  const x = scale({ low: -most, high: most }, false, LEFT, RIGHT, 8, false);
  const clamped = (figure: number) => Math.min(Math.max(x.at(figure), LEFT), RIGHT);
  const bottom = rows.length * ROW + 8;
  const several = new Set(rows.map((row) => row.arms)).size > 1;
  const label = rows.map((row) => `${row.arms}, ${row.label}: ${row.whole.middle} [${row.whole.low}, ${row.whole.high}] ${unit}`).join("; ");
  return (
    <svg class="plot forest" viewBox={`0 0 ${WIDTH} ${bottom + 38}`} role="img" aria-label={`Differences in ${unit}: ${label}`}>
      {rows.map((row, place) => {
        const y = place * ROW + ROW / 2 + 4;
        const [from, to] = [clamped(row.whole.low), clamped(row.whole.high)];
        return (
          <g key={place}>
            <rect class="margin" x={clamped(row.margin[0])} y={y - ROW / 2} width={clamped(row.margin[1]) - clamped(row.margin[0])} height={ROW} />
            {row.parts.map((part, dot) => <circle key={dot} class="part" cx={clamped(part.middle)} cy={y - 6} r="2.5" />)}
            <path class="whole" d={`M${from.toFixed(1)} ${y + 4}H${to.toFixed(1)}M${clamped(row.whole.middle).toFixed(1)} ${y - 2}v12`} />
            <text class="tick end" x={LEFT - 10} y={y + 5}>{several ? `${row.label}, ${row.arms}` : row.label}</text>
          </g>
        );
      })}
      <path class="zero" d={`M${x.at(0).toFixed(1)} 2V${bottom}`} />
      {x.ticks.filter((tick) => tick.at >= LEFT - 1 && tick.at <= RIGHT + 1).map((tick) => <text key={tick.at} class="tick middle" x={tick.at} y={bottom + 16}>{tick.label}</text>)}
      <text class="tick middle" x={(LEFT + RIGHT) / 2} y={bottom + 33}>difference, {unit}{several ? "" : `, ${rows[0]!.arms}`}</text>
    </svg>
  );
}
