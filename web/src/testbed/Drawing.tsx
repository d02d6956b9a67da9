// Hosts as boxes with the links between them.
import type { LinkView, DrawingView } from "../document";
import { linkLines } from "./links";
import { TallDrawing } from "./TallDrawing";
import { clipped } from "./words";

const [BOX, GAP, TOP, TALL, LINE] = [190, 200, 22, 66, 17];
/** Letters that fit a box, and a bold name in it. */
const [IN_BOX, IN_NAME] = [27, 23];

/** The full label of a link. */
function said({ mechanisms, facts }: LinkView): string {
  return [...mechanisms, ...facts].join(", ");
}

export function Drawing({ row, isNarrow }: { row: DrawingView; isNarrow: boolean }) {
  const { hosts, links } = row;
  const lines = links.map(linkLines);
  const width = hosts.length * BOX + links.length * GAP + 4;
  const middle = TOP + TALL / 2;
  const height = Math.max(TOP + TALL + 8, ...lines.map(({ below }) => middle + 6 + LINE * (below.length + 1)));
  const named = hosts.map((host) => (host.system === "" ? host.name : `${host.name} (${host.system})`));
  const label = named.flatMap((name, place) => (place === 0 ? [name] : [said(links[place - 1]!), name])).join("; ");
  if (isNarrow) return <TallDrawing row={row} label={label} />;
  return (
    <svg class="testbed" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label}>
      {hosts.map((host, place) => {
        const x = 2 + place * (BOX + GAP);
        return (
          <g key={place}>
            <title>{named[place]}</title>
            <rect x={x} y={TOP} width={BOX} height={TALL} rx="6" class="host" />
            <text x={x + BOX / 2} y={TOP + 28} text-anchor="middle" class="name">{clipped(host.name, IN_NAME)}</text>
            <text x={x + BOX / 2} y={TOP + 50} text-anchor="middle">{clipped(host.system, IN_BOX)}</text>
          </g>
        );
      })}
      {lines.map(({ above, below }, place) => {
        const x = 2 + place * (BOX + GAP) + BOX;
        return (
          <g key={place}>
            <title>{said(links[place]!)}</title>
            <path d={`M${x} ${middle}h${GAP}`} class="link" />
            <text x={x + GAP / 2} y={middle - 9} text-anchor="middle">{above}</text>
            {below.map((line, number) => (
              <text key={number} x={x + GAP / 2} y={middle + 3 + LINE * (number + 1)} text-anchor="middle">{line}</text>
            ))}
          </g>
        );
      })}
    </svg>
  );
}
