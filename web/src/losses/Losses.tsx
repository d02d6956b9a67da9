// What a path loses at which load: the slices of a search.
import type { LossLine, LossView, Page } from "../document";
import { Swatch } from "../chart/Chart";
import { look, outline } from "../chart/palette";
import { extent, scale, type Scale } from "../chart/scale";
import { theme } from "../theme";
import { describe } from "./words";

const [WIDTH, HEIGHT] = [960, 300];
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 940, 14, 254];

export function Losses({ page }: { page: Page }) {
  if (page.losses.length === 0) return null;
  return (
    <section id="losses" aria-labelledby="losses-title">
      <h2 id="losses-title">Loss by load</h2>
      <p class="quiet">{page.losses[0]!.about}</p>
      {page.losses.map((view) => <Loss key={view.name} view={view} />)}
    </section>
  );
}

function Loss({ view }: { view: LossView }) {
  const points = view.lines.flatMap((line) => line.points);
  const x = scale(extent(points.map((point) => point.load), false), false, LEFT + 10, RIGHT - 10, 8, false);
  const y = scale(extent(points.flatMap((point) => [point.loss, point.high ?? point.loss]), false), false, BOTTOM, TOP, 5, true);
  return (
    <figure class="graph">
      <svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${view.title}: ${view.lines.map(describe).join("; ")}`}>
        {y.ticks.map((tick) => (
          <g key={tick.at}>
            <path class="grid" d={`M${LEFT} ${tick.at.toFixed(1)}H${RIGHT}`} />
            <text class="tick end" x={LEFT - 6} y={tick.at + 4}>{tick.label}</text>
          </g>
        ))}
        {x.ticks.map((tick) => <text key={tick.at} class="tick middle" x={tick.at} y={BOTTOM + 17}>{tick.label}</text>)}
        <text class="tick middle" x={(LEFT + RIGHT) / 2} y={BOTTOM + 36}>load, {view.unit}</text>
        <text class="tick middle" transform={`translate(14 ${(TOP + BOTTOM) / 2}) rotate(-90)`}>lost or late, %</text>
        {view.lines.map((line, number) => <Marks key={line.label} line={line} number={number} x={x} y={y} />)}
      </svg>
      <figcaption>
        {view.title}
        <ul class="legend">
          {view.lines.map((line, number) => <li key={line.label}><Swatch number={number} theme={theme.value} /> {line.counted}</li>)}
        </ul>
      </figcaption>
    </figure>
  );
}

function Marks({ line, number, x, y }: { line: LossLine; number: number; x: Scale; y: Scale }) {
  const { colour, marker, dash } = look(number, theme.value);
  const at = (load: number, loss: number) => `${x.at(load).toFixed(1)} ${y.at(loss).toFixed(1)}`;
  const bars = line.points.flatMap(({ load, low, high }) => (low === null || high === null ? [] : [`M${at(load, low)}L${at(load, high)}`]));
  return (
    <g stroke={colour} fill="none" stroke-width="1.8" data-line={line.label}>
      <path d={bars.join("")} stroke-width="1.3" />
      <path d={line.points.map((point, place) => `${place ? "L" : "M"}${at(point.load, point.loss)}`).join("")} stroke-dasharray={dash || undefined} />
      {line.points.map((point) => (
        <path key={point.load} d={outline(marker, x.at(point.load), y.at(point.loss), 4)}>
          <title>{`${line.label}, ${point.load}: ${point.shown} % in ${point.slices} slices`}</title>
        </path>
      ))}
    </g>
  );
}
