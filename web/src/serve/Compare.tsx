// Two records side by side, as `stacklab compare` prints them.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { BlockView, Compared } from "../document";
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

function Block({ block }: { block: BlockView }) {
  switch (block.kind) {
    case "title":
      return <h1>{block.text}</h1>;
    case "heading":
      return <h2>{block.text}</h2>;
    case "prose":
      return <p>{block.text}</p>;
    case "facts":
      return <Facts facts={block.facts} />;
    case "list":
      return <ul>{block.points.map((point, place) => <li key={place}>{point}</li>)}</ul>;
    case "table":
      return (
        <div class="scroll" tabIndex={0} role="region" aria-label={`Table: ${block.columns.join(", ")}`}>
          <table>
            <thead><tr>{block.columns.map((title, place) => <th scope="col" key={place}>{title}</th>)}</tr></thead>
            <tbody>
              {block.rows.map((row, place) => (
                <tr key={place}>{row.map((cell, column) => <td key={column} class={block.figures[column] ? "number" : ""}>{cell}</td>)}</tr>
              ))}
            </tbody>
          </table>
          {block.notes.length > 0 && <ol>{block.notes.map((note, place) => <li key={place}>{note}</li>)}</ol>}
        </div>
      );
  }
}
