// Who has the radio channel when: the first exchanges of a run's measured window.
import type { ChannelView } from "../document";
import { scale } from "../chart/scale";
import { Facts } from "../testbed/Testbed";

const [WIDTH, LANE] = [1120, 26];
const [LEFT, RIGHT, TOP] = [104, 1108, 12];

export function Channel({ channel }: { channel: ChannelView }) {
  const bottom = TOP + LANE * channel.lanes.length;
  const x = scale({ low: 0, high: channel.end_ms || 1 }, false, LEFT, RIGHT, 8, true);
  const exchanges = channel.lanes.reduce((sum, lane) => sum + lane.begin_ms.length, 0);
  const label = `Who has the radio channel: ${exchanges} exchanges in ${channel.end_ms} ms`;
  return (
    <figure class="channel">
      {exchanges > 0 && (
        <svg class="plot" viewBox={`0 0 ${WIDTH} ${bottom + 44}`} role="img" aria-label={label}>
          {channel.lanes.map((lane, place) => {
            const y = TOP + LANE * place;
            const bars = lane.begin_ms.map((begin, i) => `M${x.at(begin).toFixed(2)} ${y + 3}H${x.at(lane.end_ms[i]!).toFixed(2)}V${y + LANE - 3}H${x.at(begin).toFixed(2)}z`);
            return (
              <g key={lane.name} data-lane={lane.name}>
                <text class="tick end" x={LEFT - 8} y={y + LANE / 2 + 4}>{lane.name}</text>
                <path class="grid" d={`M${LEFT} ${y + LANE}H${RIGHT}`} />
                <path class={`air air-${place}`} d={bars.join("")} />
              </g>
            );
          })}
          {x.ticks.filter((tick) => tick.at <= RIGHT + 1).map((tick) => <text key={tick.at} class="tick middle" x={tick.at} y={bottom + 16}>{tick.label}</text>)}
          <text class="tick middle" x={(LEFT + RIGHT) / 2} y={bottom + 34}>ms after the first measured arrival, or that of the first slice</text>
        </svg>
      )}
      <figcaption>
        The radio channel: {exchanges} exchanges from the beginning, and shares of the time that was measured
        <Facts facts={channel.facts} />
      </figcaption>
    </figure>
  );
}
