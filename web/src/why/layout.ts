// Where the functions of a flame graph are drawn.
import type { FlameView } from "../document";

/** A function's box: left end and width as shares of the graph, and the row. */
export interface Box {
  node: number;
  left: number;
  width: number;
  depth: number;
}

/** What a box is as wide as: the function's time in both arms, so that none is lost that only one arm calls. */
function weight(flame: FlameView, node: number): number {
  return flame.baseline[node]! + flame.candidate[node]!;
}

/** The place behind all that a function calls. */
function end(flame: FlameView, node: number): number {
  let place = node + 1;
  while (place < flame.depth.length && flame.depth[place]! > flame.depth[node]!) place++;
  return place;
}

/** The functions that called this one, the outermost first. */
export function callers(flame: FlameView, node: number): number[] {
  const found: number[] = [];
  let depth = flame.depth[node]!;
  for (let place = node - 1; place >= 0 && depth > 0; place--) {
    if (flame.depth[place]! < depth) {
      found.unshift(place);
      depth = flame.depth[place]!;
    }
  }
  return found;
}

/** The boxes of all functions, or of one, its callers and all that it calls; those narrower than the least share are left out. */
export function boxes(flame: FlameView, zoomed: number | undefined, least: number): Box[] {
  const all: Box[] = [];
  let [from, to, whole] = [0, flame.depth.length, 0];
  if (zoomed === undefined) {
    for (let node = 0; node < to; node++) if (flame.depth[node] === 0) whole += weight(flame, node);
  } else {
    all.push(...callers(flame, zoomed).map((node) => ({ node, left: 0, width: 1, depth: flame.depth[node]! })));
    [from, to, whole] = [zoomed, end(flame, zoomed), weight(flame, zoomed)];
  }
  if (!(whole > 0)) return all;
  // Where the next function of each row begins.
  const next: number[] = [];
  for (let node = from; node < to; node++) {
    const depth = flame.depth[node]!;
    const [left, width] = [next[depth] ?? 0, weight(flame, node) / whole];
    next[depth] = left + width;
    next[depth + 1] = left;
    if (width >= least) all.push({ node, left, width, depth });
  }
  return all;
}

/** The functions whose names hold a text, those with most time first. */
export function found(flame: FlameView, text: string): number[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  const hits = flame.name.flatMap((name, node) => (flame.names[name]!.toLowerCase().includes(wanted) ? [node] : []));
  return hits.sort((a, b) => weight(flame, b) - weight(flame, a));
}
