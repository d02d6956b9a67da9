// The page over a folder: its campaigns, one of them, or two side by side.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Listing, Page } from "../document";
import { Back } from "../navigation";
import { PageView } from "../PageView";
import { state } from "../state";
import { AGAIN_MS, campaign, campaigns, follow, runDetail } from "./api";
import { CampaignList, stateOf } from "./CampaignList";
import { Compare } from "./Compare";
import { FleetCampaign } from "./FleetCampaign";
import { FleetList } from "./FleetList";
import { repeatedly } from "./repeatedly";

export function Serve() {
  const { c, a, b, fleet } = state.value;
  if (c) return <Live key={c} name={c} />;
  if (a && b) return <Compare key={`${a} ${b}`} a={a} b={b} />;
  if (fleet) return <FleetCampaign key={fleet} name={fleet} />;
  return (
    <>
      <FleetList />
      <Folder />
    </>
  );
}

/** How often the list is loaded where nothing changes, so that "just now" goes out of date. */
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

/** Whether the connection to the server is lost. */
const lost = signal(false);

function Live({ name }: { name: string }) {
  const page = useSignal<Page | undefined>(undefined);
  const failed = useSignal("");
  const runs = useSignal<number | undefined>(undefined);
  const isRunning = useSignal(false);
  useEffect(() => {
    const loaded = () => page.value?.runs.block.length;
    const loading = repeatedly(async () => {
      try {
        page.value = await campaign(name);
        failed.value = "";
      } catch (error) {
        failed.value = String(error);
        return AGAIN_MS;
      }
      // The server rebuilds a changing document at intervals only: load again until it has all runs.
      return runs.value !== undefined && loaded()! < runs.value ? 1500 : undefined;
    });
    const stop = follow(
      name,
      ({ count, running }) => {
        const hasEnded = isRunning.value && !running;
        [runs.value, isRunning.value] = [count, running];
        // The first document is on its way already; the last one says how the campaign ended.
        if (page.value && (count !== loaded() || hasEnded)) loading.now();
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
          {lost.value ? "the server does not answer" : `${page.value?.runs.block.length ?? 0} runs, ${isRunning.value ? "running: followed as they come" : stateOf(false, page.value?.finished)}`}
        </span>
      </p>
      {failed.value && <p role="alert">{failed.value}</p>}
      {page.value && <PageView page={page.value} fetch={(block, position) => runDetail(name, block, position)} />}
    </>
  );
}
