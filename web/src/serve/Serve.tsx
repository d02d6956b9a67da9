// The page over a folder: its campaigns, one of them, or two side by side.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Listing, Page } from "../document";
import { PageView } from "../PageView";
import { change, state } from "../state";
import { AGAIN_MS, campaign, campaigns, follow, runDetail } from "./api";
import { CampaignList } from "./CampaignList";
import { Compare } from "./Compare";
import { repeatedly } from "./repeatedly";

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

/** How often the list is asked for where nothing changes: what changed "just now" did not for ever. */
const RELOAD_MS = 30_000;

function Folder() {
  const listing = useSignal<Listing | undefined>(undefined);
  const failed = useSignal("");
  useEffect(() => {
    const loading = repeatedly(async () => {
      try {
        listing.value = await campaigns();
        failed.value = "";
        return RELOAD_MS;
      } catch (error) {
        failed.value = String(error);
        return AGAIN_MS;
      }
    });
    const stop = follow(undefined, loading.now, () => undefined);
    return () => {
      stop();
      loading.end();
    };
  }, []);
  return (
    <>
      {failed.value && <p role="alert">{failed.value}</p>}
      {listing.value ? <CampaignList listing={listing.value} /> : !failed.value && <p>Loading …</p>}
    </>
  );
}

/** Whether the server is heard. */
const lost = signal(false);

function Live({ name }: { name: string }) {
  const page = useSignal<Page | undefined>(undefined);
  const failed = useSignal("");
  const runs = useSignal<number | undefined>(undefined);
  useEffect(() => {
    const told = () => page.value?.runs.block.length;
    const loading = repeatedly(async () => {
      try {
        page.value = await campaign(name);
        failed.value = "";
      } catch (error) {
        failed.value = String(error);
        return AGAIN_MS;
      }
      // The server makes a document that changes only now and then: what it has not told yet is asked for again.
      return runs.value !== undefined && told()! < runs.value ? 1500 : undefined;
    });
    const stop = follow(
      name,
      (count) => {
        runs.value = count;
        // The first document is on its way already.
        if (page.value && count !== told()) loading.now();
      },
      (isLost) => (lost.value = isLost),
    );
    return () => {
      stop();
      loading.end();
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
