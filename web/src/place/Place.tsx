// Where it was measured: the testbed drawn, and what each host is.
import type { Fact, Page, TestbedView } from "../document";

export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map((fact, place) => (
        <div key={place}>
          <dt>{fact.name}</dt>
          <dd>{fact.text}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Place({ page }: { page: Page }) {
  const { testbed } = page;
  return (
    <section aria-labelledby="place-title">
      <h2 id="place-title">Testbed</h2>
      <Drawing testbed={testbed} />
      <p>{testbed.sentence}</p>
      {testbed.hosts.map((host, place) => (
        <details key={place}>
          <summary>{host.name}: {host.system}</summary>
          <Facts facts={host.facts} />
          {host.abilities.length > 0 && (
            <>
              <h3>What it can do</h3>
              <Facts facts={host.abilities} />
            </>
          )}
        </details>
      ))}
    </section>
  );
}

/** Hosts as boxes with the link between them. */
function Drawing({ testbed }: { testbed: TestbedView }) {
  const hosts = testbed.hosts.slice(0, 4);
  if (hosts.length === 0) return null;
  const [box, gap, top] = [180, 190, 20];
  const width = hosts.length * box + (hosts.length - 1) * gap + 4;
  const label = `${hosts.map((host) => `${host.name} (${host.system})`).join(", ")}; between them ${testbed.link.join(", ")}`;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Drawing of the testbed">
      <svg class="testbed" viewBox={`0 0 ${width} 110`} width={width} height="110" role="img" aria-label={label}>
        {hosts.map((host, place) => {
          const x = 2 + place * (box + gap);
          const system = host.system.length > 26 ? host.system.slice(0, 25) + "…" : host.system;
          return (
            <g key={place}>
              <rect x={x} y={top} width={box} height="66" rx="6" class="host" />
              <text x={x + box / 2} y={top + 28} text-anchor="middle" class="name">{host.name}</text>
              <text x={x + box / 2} y={top + 50} text-anchor="middle">{system}</text>
              {place + 1 < hosts.length && (
                <g>
                  <path d={`M${x + box} ${top + 33}h${gap}`} class="link" />
                  <text x={x + box + gap / 2} y={top + 24} text-anchor="middle">{testbed.link[0]}</text>
                  <text x={x + box + gap / 2} y={top + 52} text-anchor="middle">{testbed.link.slice(1).join(", ")}</text>
                </g>
              )}
            </g>
          );
        })}
      </svg>
    </div>
  );
}
