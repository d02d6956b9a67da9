// The differences as a forest plot: each over all cells as a bar, single cells as dots, the margin as a band, and the
// figures at the right. Places are per cent of the width, so that the plot fits a phone, a screen and paper.
import { Fragment } from "preact";
import type { ForestRow, Span } from "../document";
import { axis, bar, type ForestAxis } from "./axis";
import { tone } from "./Sign";

const HEIGHT = 34;
const CONTROL_HEIGHT = 18;

const percent = (place: number) => `${place.toFixed(2)}%`;

/** The rows of one pair, with an axis for each unit. */
export function Forest({ rows, arms }: { rows: readonly ForestRow[]; arms: string }) {
  const drawn = rows.filter((row) => row.whole !== null);
  const units = [...new Set(drawn.map((row) => row.unit))];
  return <>{units.map((unit) => <Panel key={unit} unit={unit} arms={arms} rows={drawn.filter((row) => row.unit === unit)} />)}</>;
}

export function named(row: ForestRow): string {
  return `${row.metric}${row.transport === null ? "" : `, ${row.transport}`}`;
}

function Panel({ unit, arms, rows }: { unit: string; arms: string; rows: readonly ForestRow[] }) {
  const plan = axis(rows);
  return (
    <table class="forest">
      <caption><strong>{arms}</strong>, difference in {unit}</caption>
      <colgroup><col /><col /><col /><col /></colgroup>
      <thead class="hidden">
        <tr><th scope="col">metric</th><th scope="col">plot</th><th scope="col">difference, {unit} [95 %]</th><th scope="col">verdict</th></tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Fragment key={named(row)}>
          <tr>
            <th scope="row">
              {named(row)}
              <span class="direction">{row.higher_is_better ? "higher is better" : "lower is better"}</span>
            </th>
            <td class="drawn"><Marks row={row} plan={plan} /></td>
            <td class="number">{row.shown}</td>
            <td><span class={`sign ${tone(row)}`}>{row.words}</span></td>
          </tr>
          {row.controls.map((control) => (
            <tr key={control.arms} class="control">
              <th scope="row">control {control.arms}, {control.size} B</th>
              <td class="drawn">{control.whole !== null && <ControlMark whole={control.whole} plan={plan} />}</td>
              <td class="number">{control.shown}</td>
              <td><span class="sign">control</span></td>
            </tr>
          ))}
          </Fragment>
        ))}
        <tr class="axis" aria-hidden="true">
          <td />
          <td class="drawn">
            <svg width="100%" height="34">
              {plan.ticks.map((tick) => <text key={tick.at} class="tick middle" x={percent(tick.at)} y="12">{tick.label}</text>)}
              <text class="tick middle" x="50%" y="28">difference, {unit}{plan.isLog ? " (log scale)" : ""}</text>
            </svg>
          </td>
          <td colSpan={2} />
        </tr>
      </tbody>
    </table>
  );
}

function Marks({ row, plan }: { row: ForestRow; plan: ForestAxis }) {
  const { from, to, middle, isCut } = bar(plan, row.whole!);
  const [low, high] = row.margin.map((end) => Math.min(Math.max(plan.at(end), 0), 100)) as [number, number];
  const [dots, line] = [10, HEIGHT / 2 + 4];
  return (
    <svg width="100%" height={HEIGHT} class={row.outcome} aria-hidden="true">
      <rect class="margin" x={percent(low)} y="0" width={percent(high - low)} height={HEIGHT} />
      <line class="zero" x1="50%" x2="50%" y1="0" y2={HEIGHT} />
      {row.parts.map((part, place) => {
        const at = plan.at(part.middle);
        return at < 0 || at > 100
          ? <text key={place} class={at < 0 ? "cut" : "cut end"} x={at < 0 ? "0" : "100%"} y={dots + 3}>{at < 0 ? "\u2039" : "\u203a"}</text>
          : <circle key={place} class="part" cx={percent(at)} cy={dots} r="2.5" />;
      })}
      <line class="whole" x1={percent(from)} x2={percent(to)} y1={line} y2={line} />
      {middle !== undefined && <line class="whole" x1={percent(middle)} x2={percent(middle)} y1={line - 6} y2={line + 6} />}
      {isCut[0] && <text class="cut" x="0" y={line + 5}>{"\u25c0"}</text>}
      {isCut[1] && <text class="cut end" x="100%" y={line + 5}>{"\u25b6"}</text>}
    </svg>
  );
}

function ControlMark({ whole, plan }: { whole: Span; plan: ForestAxis }) {
  const { from, to } = bar(plan, whole);
  const line = CONTROL_HEIGHT / 2;
  return (
    <svg width="100%" height={CONTROL_HEIGHT} class="unseen" aria-hidden="true">
      <line class="zero" x1="50%" x2="50%" y1="0" y2={CONTROL_HEIGHT} />
      <line class="whole" x1={percent(from)} x2={percent(to)} y1={line} y2={line} />
    </svg>
  );
}

/** What the marks mean, each with its sign. */
export function ForestLegend({ pairs }: { pairs: readonly string[] }) {
  const [first, second] = pairs.length === 1 ? pairs[0]!.split(" vs ") : ["the first arm", "the second arm"];
  const sign = (marks: preact.JSX.Element) => <svg width="34" height="16" viewBox="0 0 34 16" aria-hidden="true">{marks}</svg>;
  const whole = (outcome: string) => sign(<g class={outcome}><path class="whole" d="M2 8H32M17 3V13" /></g>);
  return (
    <ul class="legend forest">
      <li>{whole("candidate")} {first} is better</li>
      <li>{whole("baseline")} {second} is better</li>
      <li>{whole("equivalent")} neither, or not yet known: over all cells, with its 95 % interval</li>
      <li>{sign(<circle class="part" cx="17" cy="8" r="2.5" />)} one cell</li>
      <li>{sign(<rect class="margin" x="2" y="1" width="30" height="14" />)} the margin: a smaller difference counts as none</li>
      <li>{sign(<text class="cut" x="12" y="13">{"\u25b6"}</text>)} continues beyond the axis</li>
      <li>control: one arm measured against itself; chance and the method make this difference, and no verdict depends on it</li>
    </ul>
  );
}
