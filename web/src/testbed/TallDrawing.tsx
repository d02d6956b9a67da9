// Hosts as boxes below each other, for a screen that is narrower than two of them.
import type { DrawingView } from "../document";
import { linkLines } from "./links";
import { clipped } from "./words";

const [BOX, TALL, LINE, TOP] = [190, 66, 17, 8];
/** Letters that fit a box, and a bold name in it. */
const [IN_BOX, IN_NAME] = [27, 23];
/** Beside a link there is room for 28 letters. */
const WIDTH = 340;

/** The tops of the boxes, and of what is below the last one: each link is as long as its lines of text. */
export function tops(lines: readonly number[]): number[] {
  const found = [TOP];
  for (const count of lines) found.push(found.at(-1)! + TALL + LINE * (count + 1));
  return [...found, found.at(-1)! + TALL + TOP];
}

export function TallDrawing({ row, label }: { row: DrawingView; label: string }) {
  const lines = row.links.map((link) => {
    const { above, below } = linkLines(link);
    return above === "" ? below : [above, ...below];
  });
  const top = tops(lines.map(({ length }) => length));
  const height = top.at(-1)!;
  const middle = 2 + BOX / 2;
  return (
    <svg class="testbed" viewBox={`0 0 ${WIDTH} ${height}`} width={WIDTH} height={height} role="img" aria-label={label}>
      {row.hosts.map((host, place) => (
        <g key={place}>
          <rect x={2} y={top[place]!} width={BOX} height={TALL} rx="6" class="host" />
          <text x={middle} y={top[place]! + 28} text-anchor="middle" class="name">{clipped(host.name, IN_NAME)}</text>
          <text x={middle} y={top[place]! + 50} text-anchor="middle">{clipped(host.system, IN_BOX)}</text>
        </g>
      ))}
      {lines.map((texts, place) => (
        <g key={place}>
          <path d={`M${middle} ${top[place]! + TALL}V${top[place + 1]!}`} class="link" />
          {texts.map((text, number) => (
            <text key={number} x={middle + 12} y={top[place]! + TALL + LINE * (number + 1)}>{text}</text>
          ))}
        </g>
      ))}
    </svg>
  );
}
