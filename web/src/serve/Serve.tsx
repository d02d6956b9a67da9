// The page over a folder: its campaigns, one of them, or two side by side.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Listing, Page } from "../document";
import { PageView } from "../PageView";
import { change, state } from "../state";
import { campaign, campaigns, follow, runDetail } from "./api";
import { CampaignList } from "./CampaignList";
import { Compare } from "./Compare";

/** Goes to another campaign, and forgets what was chosen in the last one. */
export function open(chosen: Record<string, string>): void {
  const forgotten = Object.fromEntries(Object.keys(state.value).filter((name) => name !== "theme").map((name) => [name, ""]));
  change({ ...forgotten, ...chosen });
}

export function Serve() {
  const { c, a, b } = state.value;
  if (c) return <Live key={c} name={c} />;
  if (a && b) return <Compare key={`${a} ${b}`} a={a} b={b} />;
  return <Folder />;
}

export function Back() {
  return <p><button type="button" onClick={() => open({})}>all campaigns</button></p>;
}

function Folder() {
  const listing = useSignal<Listing | undefined>(undefined);
  const failed = useSignal("");
  useEffect(() => {
    const load = () =>
      campaigns().then(
        (found) => (listing.value = found),
        (error: unknown) => (failed.value = String(error)),
      );
    return follow(undefined, () => void load(), () => undefined);
  }, []);
  if (failed.value) return <p role="alert">{failed.value}</p>;
  if (listing.value === undefined) return <p>Loading …</p>;
  return <CampaignList listing={listing.value} />;
}

/** Whether the server is heard. */
const lost = signal(false);

function Live({ name }: { name: string }) {
  const page = useSignal<Page | undefined>(undefined);
  const failed = useSignal("");
  const runs = useSignal<number | undefined>(undefined);
  useEffect(() => {
    let isBusy = false;
    let isStale = false;
    let ended = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async () => {
      if (isBusy) {
        isStale = true;
        return;
      }
      isBusy = true;
      isStale = false;
      try {
        page.value = await campaign(name);
        failed.value = "";
      } catch (error) {
        failed.value = String(error);
      }
      isBusy = false;
      if (ended) return;
      // The server makes a document that changes only now and then: what it has not told yet is asked for again.
      const told = page.value?.runs.block.length ?? 0;
      if (isStale || (runs.value !== undefined && told < runs.value)) timer = setTimeout(() => void load(), 1500);
    };
    const stop = follow(
      name,
      (count) => {
        runs.value = count;
        void load();
      },
      (isLost) => (lost.value = isLost),
    );
    return () => {
      ended = true;
      clearTimeout(timer);
      stop();
    };
  }, [name]);
  return (
    <>
      <Back />
      <p>
        <code>{name}</code>{" "}
        <span class="live" role="status" data-runs={page.value?.runs.block.length}>
          {lost.value ? "the server is not heard" : `${page.value?.runs.block.length ?? 0} runs, followed as they come`}
        </span>
      </p>
      {failed.value && <p role="alert">{failed.value}</p>}
      {page.value && <PageView page={page.value} fetch={(block, position) => runDetail(name, block, position)} />}
    </>
  );
}
