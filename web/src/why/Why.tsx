// Why arms differ: each explanation with its waterfall and its flame graph.
import type { Page, WhyView } from "../document";
import { Flame } from "./Flame";
import { Waterfall } from "./Waterfall";

export function Why({ page }: { page: Page }) {
  if (page.why.length === 0) return null;
  const first = page.why.findIndex((why) => why.waterfall.length > 0);
  return (
    <section id="why" aria-labelledby="why-title">
      <h2 id="why-title">Why</h2>
      <p class="quiet">
        Where in the network stack the arms differ: CPU time of both hosts per message, by samples of the CPUs, without the cost of sampling.
        A line is the 95 % interval of a step; * and a full bar: p below 0.05, adjusted for all stages. Instructions are counted in an emulated
        machine: they are exact, and they are not time.
      </p>
      {page.why.map((why, place) => <Explanation key={place} why={why} place={place} isOpen={place === first} />)}
    </section>
  );
}

function Explanation({ why, place, isOpen }: { why: WhyView; place: number; isOpen: boolean }) {
  const label = `${why.label}: ${why.arms[1]} vs ${why.arms[0]}`;
  if (why.waterfall.length === 0) return <p><strong>{label}.</strong> {why.sentence}</p>;
  return (
    <details open={isOpen}>
      <summary>{label}</summary>
      <p>{why.sentence}</p>
      {why.remarks.length > 0 && <ul>{why.remarks.map((remark, place) => <li key={place}>{remark}</li>)}</ul>}
      <Waterfall rows={why.waterfall} label={label} unit={why.unit} />
      {why.flame && <Flame flame={why.flame} place={place} arms={why.arms} unit={why.unit} />}
      <p class="quiet">{why.health}</p>
    </details>
  );
}
