// Two records side by side, as `stacklab compare` prints them.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Block as Part, Compared, Table } from "../document";
import { Back, open } from "../navigation";
import { Facts } from "../testbed/Testbed";
import { compared } from "./api";

export function Compare({ a, b }: { a: string; b: string }) {
  const found = useSignal<Compared | undefined>(undefined);
  const failed = useSignal("");
  useEffect(() => {
    compared(a, b).then(
      (both) => (found.value = both),
      (error: unknown) => (failed.value = String(error)),
    );
  }, [a, b]);
  return (
    <>
      <Back />
      <p>
        A: <code>{a}</code>, B: <code>{b}</code>{" "}
        <button type="button" onClick={() => open({ a: b, b: a })}>swap A and B</button>
      </p>
      {found.value && <p class="answer">{found.value.headline}</p>}
      {failed.value && <p role="alert">{failed.value}</p>}
      {found.value ? found.value.blocks.map((block, place) => <Block key={place} block={block} />) : !failed.value && <p>Loading …</p>}
    </>
  );
}

function Block({ block }: { block: Part }) {
  switch (block.kind) {
    case "title":
      return <h1>{block.content}</h1>;
    case "heading":
      return <h2>{block.content}</h2>;
    case "text":
      return <p>{block.content}</p>;
    case "facts":
      return <Facts facts={block.content.map(([name, text]) => ({ name, text }))} />;
    case "list":
      return <ul>{block.content.map((point, place) => <li key={place}>{point}</li>)}</ul>;
    case "table":
      return <Cells table={block.content} />;
  }
}

function Cells({ table: { columns, rows, footnotes } }: { table: Table }) {
  const titles = columns.map(([title]) => title);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Table: ${titles.join(", ")}`}>
      <table>
        <thead><tr>{titles.map((title, place) => <th scope="col" key={place}>{title}</th>)}</tr></thead>
        <tbody>
          {rows.map((row, place) => (
            <tr key={place}>{row.map((cell, column) => <td key={column} class={columns[column]?.[1] ? "number" : ""}>{cell}</td>)}</tr>
          ))}
        </tbody>
      </table>
      {footnotes.length > 0 && <ol>{footnotes.map((note, place) => <li key={place}>{note}</li>)}</ol>}
    </div>
  );
}
