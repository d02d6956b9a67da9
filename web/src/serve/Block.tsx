// A part of a report as the program prints it.
import type { Block as Part, Table } from "../document";
import { Facts } from "../testbed/Testbed";

export function Block({ block }: { block: Part }) {
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
