// Choose a metric and what it depends on; table and graph side by side.
import { computed, useSignal } from "@preact/signals";
import { render } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Chart, layout, Swatch, type Layout, type Options } from "../chart/Chart";
import type { Page } from "../document";
import { change, isOn, state } from "../state";
import { theme } from "../theme";
import { Controls } from "./Controls";
import { csv, fileName, png, save } from "./download";
import { FigureTable } from "./FigureTable";
import { isWide, select, type Shown } from "./select";

export const options = computed<Options>(() => ({
  logX: isOn("logx", true),
  logY: isOn("logy", false),
  intervals: isOn("intervals", true),
  limits: isOn("limits", true),
  published: isOn("published", true),
  runs: isOn("runs", false),
  fromZero: isOn("zero", false),
}));

export function Explorer({ page }: { page: Page }) {
  const shown = select(page, state.value);
  if (shown === undefined || shown.lines.length === 0) {
    return (
      <section id="explorer" aria-labelledby="explorer-title">
        <h2 id="explorer-title">Explorer</h2>
        {shown && <Controls page={page} shown={shown} />}
        <p>Nothing was measured of this.</p>
      </section>
    );
  }
  return (
    <section id="explorer" aria-labelledby="explorer-title">
      <h2 id="explorer-title">Explorer</h2>
      <Controls page={page} shown={shown} />
      <p class="definition">
        <strong>{shown.metric.label}</strong> {shown.metric.definition}. <span class="quiet">{shown.common}</span>
      </p>
      <div class={isWide(shown) ? "above" : "beside"}>
        <Graph shown={shown} />
        <FigureTable page={page} shown={shown} />
      </div>
    </section>
  );
}

/** The description of a point: the exact figure, its runs and its interval. */
export function describe(shown: Shown, line: number, point: number): string[] {
  const { label, points } = shown.lines[line]!;
  const { x, estimate, limit } = points[point]!;
  const { unit } = shown.metric;
  const parts = [`${label}, ${shown.axis.labels[x]}: ${estimate.mean} ${unit}`];
  parts.push(estimate.low === null ? `n ${estimate.n}, no interval` : `n ${estimate.n}, 95 % interval ${estimate.low} to ${estimate.high}`);
  if (limit !== undefined) parts.push(`limit by ${shown.limitedBy} ${limit} ${unit}`);
  if (estimate.missing !== null) parts.push(`some runs have no figure: ${estimate.missing}`);
  return parts;
}

function Graph({ shown }: { shown: Shown }) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useSignal(640);
  const near = useSignal<number | undefined>(undefined);
  useLayoutEffect(() => {
    const element = frame.current!;
    const measure = () => {
      width.value = Math.max(280, Math.min(1100, Math.floor(element.clientWidth)));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const height = Math.round(Math.max(260, Math.min(440, width.value * 0.62)));
  const plan = useMemo(
    () => layout(shown, options.value, width.value, height),
    [shown, options.value, width.value, height],
  );
  const spot = near.value === undefined ? undefined : plan.spots[near.value];
  const lines = spot && describe(shown, spot.line, spot.point);

  const point = (event: PointerEvent) => {
    const box = frame.current!.querySelector("svg")!.getBoundingClientRect();
    near.value = nearest(plan, event.clientX - box.left, event.clientY - box.top);
  };
  const key = (event: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 };
    const by = moves[event.key];
    if (event.key === "Escape") near.value = undefined;
    if (by === undefined || plan.spots.length === 0) return;
    event.preventDefault();
    near.value = near.value === undefined ? 0 : (near.value + by + plan.spots.length) % plan.spots.length;
  };
  return (
    <figure class="graph">
      <div
        ref={frame}
        class="frame"
        tabIndex={0}
        role="img"
        aria-label={`Graph of ${shown.metric.label} by ${shown.axis.label}: ${shown.lines.length} lines. The table beside it has the figures; arrow keys go from point to point.`}
        onPointerMove={point}
        onPointerDown={point}
        onPointerLeave={() => (near.value = undefined)}
        onKeyDown={key}
        onBlur={() => (near.value = undefined)}
      >
        <Chart shown={shown} options={options.value} theme={theme.value} plan={plan}>
          {spot && <circle cx={spot.x} cy={spot.y} r="8" fill="none" stroke={theme.value === "dark" ? "#e8eaed" : "#16191d"} stroke-width="1.5" />}
        </Chart>
        {spot && lines && (
          <div class="tip" style={tipPlace(plan, spot)} data-tip>
            {lines.map((line, i) => (i === 0 ? <strong key={i}>{line}</strong> : <span key={i}>{line}</span>))}
          </div>
        )}
      </div>
      <p class="hidden" aria-live="polite">{lines?.join(". ")}</p>
      <Legend shown={shown} />
      <Downloads shown={shown} />
    </figure>
  );
}

function nearest(plan: Layout, x: number, y: number): number | undefined {
  let best: number | undefined;
  let least = 40 * 40;
  plan.spots.forEach((spot, place) => {
    const apart = (spot.x - x) ** 2 + (spot.y - y) ** 2;
    if (apart < least) [least, best] = [apart, place];
  });
  return best;
}

/** In the half of the graph where the point is not. */
function tipPlace(plan: Layout, spot: { y: number }): Record<string, string> {
  const [left, maxWidth] = [`${plan.left + 8}px`, `${plan.right - plan.left - 12}px`];
  const isAbove = spot.y < (plan.top + plan.bottom) / 2;
  return isAbove ? { left, maxWidth, bottom: `${plan.height - plan.bottom + 6}px` } : { left, maxWidth, top: `${plan.top}px` };
}

function Legend({ shown }: { shown: Shown }) {
  const { limits, published } = options.value;
  const limited = limits && shown.lines.some((line) => line.points.some((point) => point.limit !== undefined));
  const grey = shown.lines.filter(({ look }) => look === undefined).length;
  return (
    <figcaption>
      <ul class="legend">
        {shown.lines.map(({ label, look }) => look !== undefined && (
          <li key={label}>
            <Swatch number={look} theme={theme.value} /> {label}
          </li>
        ))}
        {grey > 0 && <li class="quiet"><Swatch number={undefined} theme={theme.value} /> {grey} more</li>}
        {limited && <li class="quiet">dashed: limit by {shown.limitedBy}</li>}
        {published && shown.overlays.map((series) => <li key={series.label} class="quiet">dotted, grey: published, {series.label}</li>)}
      </ul>
    </figcaption>
  );
}

function Downloads({ shown }: { shown: Shown }) {
  const failed = useSignal("");
  const picture = () => {
    const size = [760, 470] as const;
    const plan = layout(shown, options.value, ...size);
    const holder = document.createElement("div");
    render(<Chart shown={shown} options={options.value} theme="light" plan={plan} alone />, holder);
    const svg = holder.querySelector("svg")!;
    const text = '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(svg) + "\n";
    const found = { text, width: size[0], height: Number(svg.getAttribute("height")) };
    render(null, holder);
    return found;
  };
  const asPng = async () => {
    try {
      const { text, width, height } = picture();
      save(fileName(shown, "png"), await png(text, width, height));
    } catch (error) {
      failed.value = `no PNG: ${String(error)}`;
    }
  };
  return (
    <p class="downloads">
      Download what is shown:{" "}
      <button type="button" onClick={() => save(fileName(shown, "svg"), new Blob([picture().text], { type: "image/svg+xml" }))}>SVG</button>{" "}
      <button type="button" onClick={() => void asPng()}>PNG</button>{" "}
      <button type="button" onClick={() => save(fileName(shown, "csv"), new Blob([csv(shown)], { type: "text/csv" }))}>CSV</button>
      {failed.value && <span role="alert">{failed.value}</span>}
    </p>
  );
}

/** Goes to the explorer with something chosen. */
export function explore(chosen: Record<string, string>): void {
  change(chosen);
  const section = document.getElementById("explorer");
  section?.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  section?.querySelector("select")?.focus({ preventScroll: true });
}

