// A campaign of a fleet: how far it is, what holds over pairs, each pair's verdicts, and its agents.
import type { FleetPage } from "../document";
import { Back } from "../navigation";
import { state } from "../state";
import { Facts } from "../testbed/Testbed";
import { fleetCampaign } from "./api";
import { Block } from "./Block";
import { FleetMatrix } from "./FleetMatrix";
import { usePolled } from "./polled";

export function FleetCampaign({ name }: { name: string }) {
  const from = Number.parseInt(state.value["from"] ?? "", 10) || 0;
  const failures = state.value["failures"] === "1";
  const { found, failed } = usePolled(() => fleetCampaign(name, from, failures), ({ changes }) => changes, [name, from, failures]);
  const page = found.value;
  return (
    <>
      <Back />
      {page && <h1>{page.campaign.title || name}</h1>}
      <p>
        <code>{name}</code>{" "}
        {page && (
          <>
            <span class="live" role="status">{page.campaign.state}</span> began {page.campaign.started}
          </>
        )}
      </p>
      {failed.value && <p role="alert">{failed.value}</p>}
      {page ? <Shown page={page} failures={failures} /> : !failed.value && <p>Loading …</p>}
    </>
  );
}

function Shown({ page, failures }: { page: FleetPage; failures: boolean }) {
  const { verdicts, measured, agents } = page;
  return (
    <>
      <Facts
        facts={[
          { name: "blocks", text: page.campaign.progress },
          ...(page.agents_summary ? [{ name: "agents", text: page.agents_summary }] : []),
          ...verdicts.facts,
        ]}
      />
      <p class="answer">{verdicts.answer}</p>
      {verdicts.blocks.length > 0 && (
        <section aria-label="Over pairs">
          {verdicts.blocks.map((block, place) => <Block key={place} block={block} />)}
          <details>
            <summary>Terms</summary>
            <p>{verdicts.terms}</p>
          </details>
        </section>
      )}
      <FleetMatrix page={page} failures={failures} />
      {measured.length > 0 && (
        <section aria-labelledby="measured-title">
          <h2 id="measured-title">Being measured</h2>
          <ul class="chips">
            {measured.map(({ pair, sender, receiver, block, attempt }) => (
              <li key={`${pair}.${block}`}>
                {sender} -&gt; {receiver}: block {block + 1}{attempt > 1 && `, attempt ${attempt}`}
              </li>
            ))}
          </ul>
        </section>
      )}
      {agents.length > 0 && (
        <section aria-labelledby="agents-title">
          <h2 id="agents-title">Agents</h2>
          <ul class="chips">
            {agents.map(({ name, labels, is_lost, state }) => (
              <li key={name} class={is_lost ? "lost" : ""}>
                {name} {labels && <span class="quiet">{labels}</span>} {state}
              </li>
            ))}
          </ul>
          {page.unlisted_agents > 0 && <p>{page.unlisted_agents} more are not listed.</p>}
        </section>
      )}
    </>
  );
}
