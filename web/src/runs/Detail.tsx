// What the hosts saw of one run.
import type { CpuView, EndView, HistogramView, RunDetail, SeriesView } from "../document";
import type { Theme } from "../chart/palette";
import { extent, scale, thinned } from "../chart/scale";
import { useEffect, useRef } from "preact/hooks";
import { Facts } from "../testbed/Testbed";
import { Channel } from "./Channel";
import { Slices } from "./Slices";

export function Detail({ detail, theme }: { detail: RunDetail; theme: Theme }) {
  const article = useRef<HTMLElement>(null);
  // It stands below the list that it was chosen from.
  useEffect(() => article.current?.scrollIntoView({ block: "nearest" }), []);
  return (
    <article class="detail" ref={article} aria-labelledby="detail-title">
      <h3 id="detail-title">{detail.label}</h3>
      {detail.remarks.length > 0 && <ul>{detail.remarks.map((remark, place) => <li key={place}>{remark}</li>)}</ul>}
      {detail.slices && <Slices slices={detail.slices} theme={theme} />}
      {detail.channel && <Channel channel={detail.channel} />}
      {detail.ends.map((end, place) => <EndDetail key={place} end={end} warmup={detail.warmup_ms} />)}
      <div class="beside">
        <div>
          <h4>Figures</h4>
          {detail.about_figures && <p class="quiet">{detail.about_figures}</p>}
          <Facts facts={detail.figures} />
          {detail.missing.length > 0 && (
            <details>
              <summary>{detail.missing.length} metrics without a figure</summary>
              <Facts facts={detail.missing} />
            </details>
          )}
        </div>
        <div>
          <h4>How it was run</h4>
          <Facts facts={detail.facts} />
        </div>
      </div>
    </article>
  );
}

function EndDetail({ end, warmup }: { end: EndView; warmup: number }) {
  return (
    <section aria-label={`What the ${end.role} saw`}>
      <h4>{end.role}</h4>
      <div class="beside">
        <div>
          {end.series && end.series.rate.length > 1 && <Series series={end.series} warmup={warmup} />}
          {end.delays && <Histogram delays={end.delays} />}
        </div>
        <div>
          {end.cpu && <Cpu cpu={end.cpu} />}
          <Facts facts={end.facts} />
          {end.counters.length > 0 && (
            <details>
              <summary>counters that moved</summary>
              <Facts facts={end.counters} />
            </details>
          )}
        </div>
      </div>
    </section>
  );
}

const [WIDTH, HEIGHT] = [560, 190];
const [LEFT, RIGHT, TOP, BOTTOM] = [62, 548, 22, 152];

/** Payload over time, and mean delays below it where any were taken; what came before the measured part is not counted. */
function Series({ series, warmup }: { series: SeriesView; warmup: number }) {
  const joined = series.joined > 1 && `; rows joined by ${series.joined}`;
  return (
    <figure>
      <OverTime series={series} warmup={warmup} name={`Payload in ${series.rate_unit}`} figures={series.rate} />
      <figcaption>Payload, {series.rate_unit}{joined}</figcaption>
      {series.delay.some((delay) => delay !== null) && (
        <>
          <OverTime series={series} warmup={warmup} name={`Mean delay in ${series.delay_unit}`} figures={series.delay} />
          <figcaption>Mean delay, {series.delay_unit}{joined}</figcaption>
        </>
      )}
    </figure>
  );
}

interface OverTimeProps {
  series: SeriesView;
  warmup: number;
  name: string;
  figures: readonly (number | null)[];
}

/** Pieces of a line, which ends where a figure is missing; a figure alone is a dot. */
export function pieces(figures: readonly (number | null)[], at: (figure: number, place: number) => string): string {
  let path = "";
  figures.forEach((figure, place) => {
    if (figure === null) return;
    const begins = place === 0 || figures[place - 1] === null;
    const isAlone = begins && (figures[place + 1] ?? null) === null;
    path += `${begins ? "M" : "L"}${at(figure, place)}${isAlone ? "h0" : ""}`;
  });
  return path;
}

function OverTime({ series, warmup, name, figures }: OverTimeProps) {
  const last = series.start_ms.at(-1) ?? 0;
  const begin = -Math.min(warmup, last / 3);
  const x = (ms: number) => LEFT + ((ms - begin) / (last - begin || 1)) * (RIGHT - LEFT);
  const y = scale(extent(figures.filter((figure) => figure !== null), false), false, BOTTOM, TOP, 4, true);
  const ticks = scale({ low: 0, high: last }, false, x(0), RIGHT, 5, true).ticks.filter((tick) => tick.at <= RIGHT + 1);
  const path = pieces(figures, (figure, place) => `${x(series.start_ms[place]!).toFixed(1)} ${y.at(figure).toFixed(1)}`);
  const label = `${name} over ${last} ms, ${figures.length} rows${series.joined > 1 ? `, each of ${series.joined} of the record's` : ""}`;
  return (
    <svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      {begin < 0 && <rect class="warmup" x={LEFT} y={TOP} width={x(0) - LEFT} height={BOTTOM - TOP} />}
      {begin < 0 && <text x={LEFT + 2} y={TOP - 6} class="tick">warm-up {warmup} ms, not counted</text>}
      {y.ticks.map((tick) => <g key={tick.at}><path class="grid" d={`M${LEFT} ${tick.at}H${RIGHT}`} /><text class="tick end" x={LEFT - 6} y={tick.at + 4}>{tick.label}</text></g>)}
      {ticks.map((tick) => <text key={tick.at} class="tick middle" x={tick.at} y={BOTTOM + 16}>{tick.label}</text>)}
      <path class="series" d={path} />
      <text class="tick middle" x={(LEFT + RIGHT) / 2} y={BOTTOM + 33}>ms after the first measured arrival</text>
    </svg>
  );
}

/** Delays on a logarithmic axis with their percentiles. */
function Histogram({ delays }: { delays: HistogramView }) {
  const range = extent(delays.edges, true);
  const x = scale(range, true, LEFT, RIGHT, 8, false);
  const y = scale(extent([0, ...delays.counts], false), false, BOTTOM, TOP, 4, true);
  const bars = delays.counts.map((count, i) => {
    const [a, b] = [x.at(delays.edges[i]!), x.at(delays.edges[i + 1]!)];
    return count > 0 ? `M${a.toFixed(1)} ${BOTTOM}V${y.at(count).toFixed(1)}H${b.toFixed(1)}V${BOTTOM}z` : "";
  });
  const marked = delays.percentiles.filter(([name]) => ["median", "99 %", "99.9 %"].includes(name));
  return (
    <figure>
      <svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Histogram of ${delays.n} ${delays.what}, ${delays.unit} on a logarithmic axis`}>
        {y.ticks.map((tick) => <g key={tick.at}><path class="grid" d={`M${LEFT} ${tick.at}H${RIGHT}`} /><text class="tick end" x={LEFT - 6} y={tick.at + 4}>{tick.label}</text></g>)}
        {thinned(x, (label) => 12 + 7 * label.length).ticks.map((tick) => <text key={tick.at} class="tick middle" x={tick.at} y={BOTTOM + 16}>{tick.label}</text>)}
        <path class="bars" d={bars.join("")} />
        {marked.map(([name, delay], i) => (
          <g key={name}>
            <path class="percentile" d={`M${x.at(delay).toFixed(1)} ${TOP - 4}V${BOTTOM}`} />
            <text class="tick" x={Math.min(x.at(delay) + 3, RIGHT - 44)} y={TOP + 4 + 13 * i}>{name}</text>
          </g>
        ))}
        <text class="tick middle" x={(LEFT + RIGHT) / 2} y={BOTTOM + 33}>{delays.what}, {delays.unit}</text>
      </svg>
      <figcaption>
        All {delays.n} {delays.what} of the measured window, mean {delays.mean} {delays.unit}
        <div class="scroll" tabIndex={0} role="region" aria-label={`Percentiles of ${delays.what}, ${delays.unit}`}>
        <table class="percentiles">
          <thead><tr>{delays.percentiles.map(([name]) => <th scope="col" key={name}>{name}</th>)}</tr></thead>
          <tbody><tr>{delays.percentiles.map(([name, delay]) => <td key={name} class="number">{delay}</td>)}</tr></tbody>
        </table>
        </div>
      </figcaption>
    </figure>
  );
}

/** Parts of the CPU time. */
function Cpu({ cpu }: { cpu: CpuView }) {
  let left = 0;
  const parts = cpu.parts.map(([name, percent]) => {
    const part = { name, percent, left, width: cpu.whole > 0 ? (100 * percent) / cpu.whole : 0 };
    left += part.width;
    return part;
  });
  return (
    <figure>
      <svg class="cpu" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={`CPU: ${cpu.parts.map(([name, percent]) => `${name} ${percent} %`).join(", ")} of a core`}>
        {parts.map((part) => <rect key={part.name} class={`cpu-${part.name}`} x={part.left} y="0" width={part.width} height="8" />)}
      </svg>
      <figcaption>
        CPU, % of a core (scope {cpu.scope}): busy {cpu.busy};{" "}
        {parts.map((part) => [<span key={part.name} class="part"><i class={`cpu-${part.name}`} aria-hidden="true" /> {part.name} {part.percent}</span>, " "])}
      </figcaption>
    </figure>
  );
}
