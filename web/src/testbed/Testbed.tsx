// The testbed: a drawing, and the facts of each host.
import type { Fact, Page } from "../document";
import { Drawing } from "./Drawing";

export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map((fact, place) => (
        <div key={place}>
          <dt>{fact.name}</dt>
          <dd><Lines text={fact.text} /></dd>
        </div>
      ))}
    </dl>
  );
}

/** A text of several lines, such as one for each mechanism, as a list that is folded. */
function Lines({ text }: { text: string }) {
  const lines = text.split("\n");
  if (lines.length === 1) return <>{text}</>;
  return (
    <details>
      <summary>{lines.length} of them</summary>
      <ul>{lines.map((line) => <li key={line}>{line}</li>)}</ul>
    </details>
  );
}

export function Testbed({ page }: { page: Page }) {
  const { testbed } = page;
  return (
    <section aria-labelledby="place-title">
      <h2 id="place-title">Testbed</h2>
      {testbed.rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Drawing of the testbed">
          {testbed.rows.map((row, place) => <Drawing key={place} row={row} />)}
        </div>
      )}
      <div><Lines text={testbed.sentence} /></div>
      {testbed.hosts.map((host, place) => (
        <details key={place}>
          <summary>{host.name}{host.kind !== "" && ` (${host.kind})`}: {host.system}</summary>
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
