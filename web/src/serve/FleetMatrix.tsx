// The matrix of a fleet: rows are pairs of hosts, columns are comparisons. A large one comes in parts.
import type { FleetCell, FleetPage, FleetPairRow } from "../document";
import { change } from "../state";
import { tone } from "../verdicts/Sign";

export function FleetMatrix({ page, failures }: { page: FleetPage; failures: boolean }) {
  const { pairs, failed, verdicts, part, before, after } = page;
  const hasFailure = pairs.some(({ failure }) => failure !== null);
  return (
    <section aria-labelledby="fleet-pairs">
      <h2 id="fleet-pairs">Pairs</h2>
      {verdicts.columns.length > 0 && <p class="quiet">{verdicts.legend}</p>}
      <div class="controls">
        {(failed > 0 || failures) && (
          <label class="switch">
            <input type="checkbox" checked={failures} onChange={(event) => change({ failures: event.currentTarget.checked ? "1" : "", from: "" })} />
            only pairs with a failure ({failed})
          </label>
        )}
        {(before !== null || after !== null) && (
          <span>
            <Go to={before}>previous</Go> {part} <Go to={after}>next</Go>
          </span>
        )}
      </div>
      <div class="scroll both" tabIndex={0} role="region" aria-label="Verdicts of each pair">
        <table class="matrix overview fleet">
          <thead>
            <tr>
              <th scope="col">pair</th>
              <th scope="col">blocks</th>
              {verdicts.columns.map((column) => <th scope="col" key={column}>{column}</th>)}
              {hasFailure && <th scope="col">last failure</th>}
            </tr>
          </thead>
          <tbody>{pairs.map((pair) => <Row key={pair.pair} pair={pair} columns={verdicts.columns} hasFailure={hasFailure} />)}</tbody>
        </table>
      </div>
    </section>
  );
}

function Go({ to, children }: { to: number | null; children: string }) {
  return <button type="button" disabled={to === null} onClick={() => change({ from: String(to ?? 0) })}>{children}</button>;
}

function Row({ pair, columns, hasFailure }: { pair: FleetPairRow; columns: readonly string[]; hasFailure: boolean }) {
  const [sender, receiver] = pair.name.split(" -> ");
  return (
    <tr>
      <th scope="row">
        {sender} {receiver && <span class="line">-&gt; {receiver}</span>}
      </th>
      <td class="number">{pair.done} of {pair.blocks}</td>
      {columns.map((column, place) => <Verdict key={column} cell={pair.cells[place]} />)}
      {hasFailure && <td class="failure">{pair.failure}</td>}
    </tr>
  );
}

function Verdict({ cell }: { cell: FleetCell | undefined }) {
  if (cell === undefined) return <td />;
  return (
    <td class={tone(cell)} title={cell.words}>
      {cell.sign}
      <span class="hidden">: {cell.words}</span>
    </td>
  );
}
