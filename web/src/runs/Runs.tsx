// Single runs: a list, and what the hosts saw of one.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Page, Remark, RunDetail } from "../document";
import { Choice } from "../explorer/Controls";
import { change, state } from "../state";
import { theme } from "../theme";
import { Detail } from "./Detail";

/** Most rows of the list at once. */
const ROWS = 20;

/** Most kinds of remarks above the list. */
const REMARKS = 12;

/** Fetches what the document does not hold; undefined where there is nobody to ask. */
export type Fetch = ((block: number, position: number) => Promise<RunDetail>) | undefined;

const key = (block: number, position: number) => `${block}.${position}`;

export function Runs({ page, fetch }: { page: Page; fetch: Fetch }) {
  const { runs } = page;
  const held = new Map(page.details.map((detail) => [key(detail.block, detail.position), detail]));
  const wanted = state.value["run"] ?? "";
  const only = state.value["runs-of"] ?? "all";
  const first = Number(state.value["runs-from"] ?? 0) || 0;
  const invalid = new Set(runs.remarks.filter((remark) => remark.code === "invalid").flatMap((remark) => remark.runs));
  const warned = new Map<number, string[]>();
  for (const remark of runs.remarks) {
    for (const run of remark.runs) warned.set(run, [...(warned.get(run) ?? []), remark.code]);
  }
  const listed: number[] = [];
  for (let run = 0; run < runs.block.length; run++) {
    const isHeld = fetch !== undefined || held.has(key(runs.block[run]!, runs.position[run]!));
    if (only === "invalid" ? !invalid.has(run) : only === "warned" ? !warned.has(run) : only === "detail" ? !isHeld : false) continue;
    listed.push(run);
  }
  const from = Math.min(first, Math.max(0, Math.floor((listed.length - 1) / ROWS) * ROWS));
  return (
    <section aria-labelledby="runs-title" id="runs">
      <h2 id="runs-title">Runs</h2>
      {runs.remarks.length > 0 && (
        <ul>
          {runs.remarks.slice(0, REMARKS).map((remark) => <Kind key={remark.code + remark.text} remark={remark} />)}
        </ul>
      )}
      {runs.remarks.length > REMARKS && (
        <details>
          <summary>{runs.remarks.length - REMARKS} more kinds of remarks</summary>
          <ul>{runs.remarks.slice(REMARKS).map((remark) => <Kind key={remark.code + remark.text} remark={remark} />)}</ul>
        </details>
      )}
      {fetch === undefined && held.size < runs.block.length && (
        <p class="quiet">
          What the hosts saw is in this file for {held.size} of {runs.block.length} runs; <code>stacklab serve</code> shows it of all.
        </p>
      )}
      <form class="controls" onSubmit={(event) => event.preventDefault()}>
        <Choice
          name="list runs"
          value={only}
          choices={[["all", "all"], ["detail", "with detail here"], ["warned", "with remarks"], ["invalid", "not valid"]]}
          onChoice={(of) => change({ "runs-of": of, "runs-from": "" })}
        />
      </form>
      <div class="scroll" tabIndex={0} role="region" aria-label="List of runs">
        <table class="stacked runs">
          <thead>
            <tr><th scope="col">block</th><th scope="col">run</th><th scope="col">probe</th><th scope="col">after, s</th><th scope="col">remarks</th><th scope="col">detail</th></tr>
          </thead>
          <tbody>
            {listed.slice(from, from + ROWS).map((run) => {
              const name = key(runs.block[run]!, runs.position[run]!);
              const label = page.cells[runs.cell[run]!]!.label;
              return (
                <tr key={name} aria-current={name === wanted ? "true" : undefined}>
                  <td class="number" data-label="block">{runs.block[run]! + 1}</td>
                  <th scope="row">{label}</th>
                  <td data-label="probe">{runs.probes[runs.probe[run]!]}</td>
                  <td class="number" data-label="after, s">{runs.started_s[run]}</td>
                  <td data-label={warned.has(run) ? "remarks" : undefined}>{(warned.get(run) ?? []).join(", ")}</td>
                  <td class="show">
                    {(fetch !== undefined || held.has(name)) && (
                      <button type="button" onClick={() => change({ run: name })}>
                        show<span class="hidden"> block {runs.block[run]! + 1} {label} {runs.probes[runs.probe[run]!]}</span>
                      </button>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {listed.length > ROWS && (
        <p>
          <button type="button" disabled={from === 0} onClick={() => change({ "runs-from": String(from - ROWS) })}>earlier</button>{" "}
          {from + 1} to {Math.min(from + ROWS, listed.length)} of {listed.length}{" "}
          <button type="button" disabled={from + ROWS >= listed.length} onClick={() => change({ "runs-from": String(from + ROWS) })}>later</button>
        </p>
      )}
      {wanted !== "" && <Wanted key={wanted} held={held.get(wanted)} wanted={wanted} fetch={fetch} />}
    </section>
  );
}

function Kind({ remark }: { remark: Remark }) {
  return (
    <li>
      <code>{remark.code}</code>: {remark.runs.length} {remark.runs.length === 1 ? "run" : "runs"}; {remark.text}
    </li>
  );
}

function Wanted({ held, wanted, fetch }: { held: RunDetail | undefined; wanted: string; fetch: Fetch }) {
  const fetched = useSignal<RunDetail | undefined>(undefined);
  const failed = useSignal("");
  useEffect(() => {
    if (fetch === undefined) return;
    const [block, position] = wanted.split(".").map(Number);
    fetch(block ?? 0, position ?? 0).then(
      (detail) => (fetched.value = detail),
      (error: unknown) => (failed.value = String(error)),
    );
  }, [wanted]);
  const detail = fetched.value ?? held;
  if (failed.value !== "") return <p role="alert">This run cannot be shown: {failed.value}</p>;
  if (detail === undefined) return <p>{fetch === undefined ? "This file has no detail of that run." : "Loading …"}</p>;
  return <Detail detail={detail} theme={theme.value} />;
}
