// From one arm's cost to the other's, stage by stage: each step with its 95 % interval.
import type { WaterfallRow } from "../document";
import { scale } from "../chart/scale";

const [WIDTH, LEFT, RIGHT, ROW] = [960, 220, 820, 22];

/** What the axis shows: all steps with their intervals, not down to zero, as steps are small beside the whole. */
export function reach(rows: readonly WaterfallRow[]): { low: number; high: number } {
  const ends = rows.flatMap((row) => (row.is_whole ? [row.to] : [row.from, row.to - row.half, row.to + row.half]));
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const margin = Math.max((high - low) * 0.05, 1e-9);
  return { low: low - margin, high: high + margin };
}

export function Waterfall({ rows, label, unit }: { rows: readonly WaterfallRow[]; label: string; unit: string }) {
  const x = scale(reach(rows), false, LEFT, RIGHT, 8, false);
  const bottom = rows.length * ROW + 4;
  const description = rows.map((row) => `${row.name} ${row.shown}`).join("; ");
  return (
    <svg class="plot waterfall" viewBox={`0 0 ${WIDTH} ${bottom + 38}`} role="img" aria-label={`${label}, ${unit} per message: ${description}`}>
      {x.ticks.filter((tick) => tick.at >= LEFT - 1 && tick.at <= RIGHT + 1).map((tick) => (
        <g key={tick.at}>
          <path class="grid" d={`M${tick.at} 2V${bottom}`} />
          <text class="tick middle" x={tick.at} y={bottom + 16}>{tick.label}</text>
        </g>
      ))}
      {rows.map((row, place) => {
        const y = place * ROW + ROW / 2 + 2;
        const [from, to] = [row.is_whole ? LEFT : x.at(row.from), x.at(row.to)];
        const look = row.is_whole ? "whole" : `${row.to > row.from ? "more" : "less"}${row.differs ? "" : " open"}`;
        return (
          <g key={place} class={look}>
            <rect x={Math.min(from, to)} y={y - 7} width={Math.max(Math.abs(to - from), 1)} height="14" />
            {!row.is_whole && <path class="interval" d={`M${x.at(row.to - row.half).toFixed(1)} ${y}H${x.at(row.to + row.half).toFixed(1)}`} />}
            <text class="tick end" x={LEFT - 8} y={y + 4}>{row.name}</text>
            <text class="tick" x={RIGHT + 8} y={y + 4}>{row.shown}{row.differs ? " *" : ""}</text>
          </g>
        );
      })}
      <text class="tick middle" x={(LEFT + RIGHT) / 2} y={bottom + 33}>{unit === "ns" ? "CPU time of both hosts, ns per message" : `${unit} per message`}; the axis does not begin at zero</text>
    </svg>
  );
}
