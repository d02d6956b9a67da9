// The testbed: a drawing, and the facts of each host.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
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

/** Whether the screen is a phone's, by the width of the style sheet. */
function useNarrow(): boolean {
  const narrow = useSignal(false);
  useEffect(() => {
    const query = matchMedia("(max-width: 40rem)");
    const update = () => {
      narrow.value = query.matches;
    };
    update();
    query.addEventListener("change", update);
    return () => query.removeEventListener("change", update);
  }, []);
  return narrow.value;
}

export function Testbed({ page }: { page: Page }) {
  const { testbed } = page;
  const isNarrow = useNarrow();
  return (
    <section aria-labelledby="place-title">
      <h2 id="place-title">Testbed</h2>
      {testbed.rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Drawing of the testbed">
          {testbed.rows.map((row, place) => <Drawing key={place} row={row} isNarrow={isNarrow} />)}
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
