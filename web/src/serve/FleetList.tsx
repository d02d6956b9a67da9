// The campaigns of a fleet store; nothing where the server has none.
import { address } from "../navigation";
import { fleet } from "./api";
import { usePolled } from "./polled";

export function FleetList() {
  const { found, failed } = usePolled(fleet, (all) => all?.campaigns.some(({ state }) => state === "running") ?? false, []);
  if (!found.value) return failed.value ? <p role="alert">{failed.value}</p> : null;
  const { place, campaigns, unlisted } = found.value;
  return (
    <section aria-labelledby="fleet-title">
      <h1 id="fleet-title">Fleet of {place}</h1>
      {failed.value && <p role="alert">{failed.value}</p>}
      {campaigns.length === 0 && <p>It has no campaign yet: <code>stacklab fleet run</code> makes one.</p>}
      {campaigns.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Campaigns of the fleet">
          <table>
            <thead>
              <tr>{["campaign", "state", "study", "began", "pairs", "blocks"].map((title) => <th scope="col" key={title}>{title}</th>)}</tr>
            </thead>
            <tbody>
              {campaigns.map((row) => (
                <tr key={row.name}>
                  <th scope="row"><a href={address({ fleet: row.name })}>{row.name}</a></th>
                  <td><span class="live">{row.state}</span></td>
                  <td>{row.title}</td>
                  <td class="line">{row.started}</td>
                  <td class="number">{row.pairs}</td>
                  <td class="line">{row.progress}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {unlisted > 0 && <p>{unlisted} more are not listed.</p>}
    </section>
  );
}
