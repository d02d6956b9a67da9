// A differential flame graph: which functions called which, as wide as their time in both arms, coloured by which arm has more.
import type { FlameView } from "../document";
import { clipped } from "../testbed/words";
import { change, state } from "../state";
import { boxes, found } from "./layout";

const [WIDTH, ROW, LETTER, LISTED] = [1120, 18, 6.4, 12];

/** The function that is chosen of this flame graph: `1.25` is function 25 of the second. */
export function chosen(text: string | undefined, place: number, flame: FlameView): number | undefined {
  const [graph, node] = (text ?? "").split(".").map(Number);
  return graph === place && Number.isInteger(node) && node! >= 0 && node! < flame.name.length ? node : undefined;
}

export function Flame({ flame, place, arms, unit }: { flame: FlameView; place: number; arms: [string, string]; unit: string }) {
  const zoomed = chosen(state.value["function"], place, flame);
  const text = state.value["find"] ?? "";
  const hits = found(flame, text);
  const marked = new Set(hits);
  const shown = boxes(flame, zoomed, 1 / WIDTH);
  const rows = Math.max(...shown.map((box) => box.depth), 0) + 1;
  const zoom = (node: number | undefined) => change({ function: node === undefined ? "" : `${place}.${node}` });
  const said = (node: number) => {
    const [baseline, candidate] = [flame.baseline[node]!, flame.candidate[node]!];
    const difference = candidate - baseline;
    return `${flame.names[flame.name[node]!]}: ${arms[0]} ${baseline.toFixed(0)} ${unit}, ${arms[1]} ${candidate.toFixed(0)} ${unit}, ${difference < 0 ? "" : "+"}${difference.toFixed(0)}`;
  };
  return (
    <figure class="flame">
      <div class="controls">
        <label>
          find a function
          <input type="search" value={text} onInput={(event) => change({ find: event.currentTarget.value })} />
        </label>
        <button type="button" disabled={zoomed === undefined} onClick={() => zoom(undefined)}>show all</button>
      </div>
      {text.trim() !== "" && (
        <>
          <p role="status" class="quiet">{hits.length === 1 ? "1 place has it" : `${hits.length} places have it`}{hits.length > LISTED && `; the ${LISTED} with most time`}</p>
          <ul class="hits">
            {hits.slice(0, LISTED).map((node) => <li key={node}><button type="button" onClick={() => zoom(node)}>{said(node)}</button></li>)}
          </ul>
        </>
      )}
      <svg class="plot" viewBox={`0 0 ${WIDTH} ${rows * ROW}`} role="img" aria-label={`Call chains of ${arms[1]} vs ${arms[0]}, ${shown.length} functions`}>
        {shown.map(({ node, left, width, depth }) => {
          const tone = flame.tone[node]!;
          const name = flame.names[flame.name[node]!]!;
          const letters = Math.floor((width * WIDTH - 6) / LETTER);
          return (
            <g key={node} class={`tone${tone}${marked.has(node) ? " hit" : ""}`} onClick={() => zoom(node === zoomed ? undefined : node)}>
              <title>{said(node)}</title>
              <rect x={(left * WIDTH).toFixed(2)} y={depth * ROW} width={(width * WIDTH).toFixed(2)} height={ROW - 1} />
              {letters >= 3 && <text x={left * WIDTH + 3} y={depth * ROW + 13}>{clipped(name, letters)}</text>}
            </g>
          );
        })}
      </svg>
      <figcaption>
        {zoomed !== undefined && <p class="chosen">{said(zoomed)} per message, with its callees</p>}
        {unit === "ns" ? "Callers are above their callees." : "Stages are above their functions."} A function is as wide as its {unit === "ns" ? "time" : unit} in both arms; <span class="sign candidate">{arms[1]} has more</span>{" "}
        <span class="sign baseline">{arms[0]} has more</span>, darker by how much. The families have different functions: an arm with less in one of
        them may have more in another. Click a function to show it alone, and again to show all.
      </figcaption>
    </figure>
  );
}
