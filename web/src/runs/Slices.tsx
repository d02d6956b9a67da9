// The slices of an interleaved trial: all arms over time, so that one sees why their difference holds.
import type { SlicesView } from "../document";
import { extent, scale } from "../chart/scale";
import { Swatch } from "../chart/Chart";
import { isOpen, look, outline, type Theme } from "../chart/palette";

const [WIDTH, HEIGHT] = [1120, 210];
const [LEFT, RIGHT, TOP, BOTTOM] = [62, 1108, 22, 162];

export function Slices({ slices, theme }: { slices: SlicesView; theme: Theme }) {
  const starts = slices.arms.flatMap((arm) => arm.start_ms);
  const last = Math.max(...starts, 0);
  const figures = slices.arms.flatMap((arm) => arm.figures).filter((figure) => figure !== null);
  if (figures.length === 0) return null;
  const x = scale({ low: 0, high: last || 1 }, false, LEFT, RIGHT, 8, true);
  const y = scale(extent(figures, false), false, BOTTOM, TOP, 4, true);
  const rounds = Math.max(...slices.arms.map((arm) => arm.start_ms.length));
  const label = `Slices of ${slices.arms.length} arms in turns, ${rounds} rounds over ${last} ms: ${slices.what} in ${slices.unit}`;
  return (
    <figure class="slices">
      <svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
        {y.ticks.map((tick) => <g key={tick.at}><path class="grid" d={`M${LEFT} ${tick.at}H${RIGHT}`} /><text class="tick end" x={LEFT - 6} y={tick.at + 4}>{tick.label}</text></g>)}
        {x.ticks.filter((tick) => tick.at <= RIGHT + 1).map((tick) => <text key={tick.at} class="tick middle" x={tick.at} y={BOTTOM + 16}>{tick.label}</text>)}
        {slices.arms.map((arm, place) => {
          const { colour, marker, dash } = look(place, theme);
          const points = arm.figures.flatMap((figure, slice) => (figure === null ? [] : [[x.at(arm.start_ms[slice] ?? 0), y.at(figure)] as const]));
          const heldUp = arm.start_ms.filter((_, slice) => arm.held_up[slice]);
          return (
            <g key={arm.label} stroke={colour}>
              <path d={heldUp.map((start) => `M${x.at(start).toFixed(1)} ${BOTTOM}v-7`).join("")} stroke-width="2" />
              <path d={points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("")} fill="none" stroke-width="1" stroke-dasharray={dash} opacity="0.45" />
              <path d={points.map(([x, y]) => outline(marker, x, y, 3)).join("")} fill={isOpen(marker) ? "none" : colour} />
            </g>
          );
        })}
        <text class="tick middle" x={(LEFT + RIGHT) / 2} y={BOTTOM + 33}>ms after the first slice</text>
      </svg>
      <figcaption>
        {slices.what} of each slice, {slices.unit}:{" "}
        {slices.arms.map((arm, place) => (
          <span key={arm.label}><Swatch number={place} theme={theme} /> {arm.label}{" "}</span>
        ))}
        {slices.arms.some((arm) => arm.held_up.some((was) => was)) && "; strokes at the bottom: waited for a processor for over a tenth of the slice"}
      </figcaption>
    </figure>
  );
}
