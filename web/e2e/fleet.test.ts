// A fleet on the page, during a real campaign, in a real browser.
import { writeFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FleetPage } from "../src/document";
import { browser, Folder, Running, TITLE, Watched } from "./support";

const STUDY = `title = ${JSON.stringify(TITLE)}
[factors]
family = ["ipv4", "ipv6"]
transport = ["udp"]
size = [128, 1024]
[probe.echo]
metrics = ["rtt"]
length = { time = "20ms" }
warmup = "5ms"
[[comparison]]
factor = "family"
baseline = "ipv4"
candidate = "ipv6"
`;
const NAMES = ["a0", "a1", "a2"];

let folder: Folder;
let chromium: Browser;
let server: Running;
let url: string;
let campaign: Running;
const agents = new Map<string, Running>();

async function start(name: string): Promise<void> {
  const harm = "note=<img src=x onerror='window.harmed=1'>";
  const agent = new Running(folder, "fleet", "agent", "--name", name, "--label", harm, "--dir", "agents", "--keep", `kept-${name}`);
  agents.set(name, agent);
  await agent.says(/is ready/);
}

beforeAll(async () => {
  folder = new Folder();
  writeFileSync(folder.at("study.toml"), STUDY);
  for (const name of NAMES) await start(name);
  campaign = new Running(folder, "fleet", "run", "study.toml", "--blocks", "10", "--name", "lab", "--dir", "agents");
  await campaign.says(/campaign lab/);
  server = new Running(folder, "serve", "--fleet", "fleet.db", "--listen", ":0");
  url = await server.says(/http:\S+/);
  chromium = await browser();
});

afterAll(async () => {
  for (const one of [server, campaign, ...agents.values()]) one?.stop();
  await chromium?.close();
  folder?.remove();
});

test("a fleet is followed: who measures, who is lost, and the verdicts of each pair", async () => {
  const page = await Watched.open(chromium);
  await page.tab.goto(url);
  await page.tab.click('tbody a:text-is("lab")');
  await page.tab.waitForSelector("section:has(#measured-title) li");
  await page.tab.waitForSelector('.live:text-is("running")');
  expect(await page.tab.textContent("h1")).toBe(TITLE);
  agents.get("a2")!.stop();
  await page.tab.waitForSelector('.chips .lost:has-text("a2")', { timeout: 60_000 });
  expect(await page.tab.textContent(".facts")).toContain("1 lost");
  await page.tab.waitForSelector("td.failure:not(:empty)");
  await start("a2");
  await page.tab.waitForSelector(".fleet td[title]");
  expect(await page.barriers()).toEqual([]);
  await campaign.end();
  await page.tab.waitForSelector('.live:text-is("ended")', { timeout: 20_000 });
  const report = (await folder.run("fleet", "report")).replaceAll(/\s+/g, " ");
  expect(report).toContain(await page.tab.textContent(".answer"));
  const rows = await page.tab.$$eval(".fleet tbody tr", (all) =>
    all.map((row) => [row.querySelector("th")!.textContent, ...[...row.querySelectorAll("td[title]")].map((cell) => cell.firstChild!.textContent)].join(" ")),
  );
  expect(rows.length).toBe(6);
  for (const row of rows) expect(report).toContain(row);
  await page.fine();
  await page.close();
});

test("a store that is away is said, and shown again when it is back", async () => {
  const narrow = await Watched.open(chromium, 390, "dark");
  await narrow.tab.goto(url);
  await narrow.tab.goto(new URL("/#fleet=lab", url).href);
  await narrow.tab.waitForSelector(".fleet tbody tr");
  // The page itself does not scroll sideways; the matrix does.
  expect(await narrow.tab.evaluate("document.documentElement.scrollWidth")).toBe(390);
  expect(await narrow.barriers()).toEqual([]);
  await narrow.fine();
  await narrow.tab.route("**/api/fleet/**", (route) => route.fulfill({ status: 422, contentType: "application/json", body: '{"error":"the store is away"}' }));
  await narrow.tab.goto(new URL("/#fleet=lab&failures=1", url).href);
  await narrow.tab.waitForSelector('[role="alert"]:has-text("the store is away")');
  // What was known stays.
  expect(await narrow.tab.isVisible(".fleet tbody tr")).toBe(true);
  await narrow.tab.unroute("**/api/fleet/**");
  await narrow.tab.waitForSelector('[role="alert"]', { state: "detached" });
  await narrow.close();
});

test("of a thousand pairs a part is shown, and its neighbours by buttons", async () => {
  const page = await Watched.open(chromium);
  const asked: string[] = [];
  await page.tab.route("**/api/fleet/campaign*", async (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get("from"));
    asked.push(String(from));
    const answer = (await (await route.fetch()).json()) as FleetPage;
    const pairs = Array.from({ length: 100 }, (_, place) => ({ ...answer.pairs[place % 6]!, pair: from + place, name: `pair ${from + place}` }));
    const part = `${from + 1} to ${from + 100} of 1000`;
    await route.fulfill({ json: { ...answer, pairs, part, before: from > 0 ? from - 100 : null, after: from < 900 ? from + 100 : null } });
  });
  await page.tab.goto(url);
  await page.tab.click('tbody a:text-is("lab")');
  await page.tab.waitForSelector('.fleet th:text-is("pair 99")');
  expect(await page.tab.isDisabled('button:text-is("previous")')).toBe(true);
  // The heading stays where the matrix scrolls.
  await page.tab.locator('.fleet th:text-is("pair 99")').scrollIntoViewIfNeeded();
  expect(await page.tab.isVisible('.fleet thead th:text-is("pair")')).toBe(true);
  await page.tab.click('button:text-is("next")');
  await page.tab.waitForSelector('.fleet th:text-is("pair 199")');
  expect(await page.tab.textContent(".controls")).toContain("101 to 200 of 1000");
  expect(page.tab.url()).toContain("from=100");
  expect(asked).toEqual(["0", "100"]);
  await page.fine();
  await page.close();
});
