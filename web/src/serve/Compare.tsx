// Two records side by side, as `stacklab compare` prints them.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Compared } from "../document";
import { Back, open } from "../navigation";
import { compared } from "./api";
import { Block } from "./Block";

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
