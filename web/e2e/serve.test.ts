// The page over a folder, during a real campaign, in a real browser.
import { spawnSync } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { browser, first, fitted, Folder, Running, TITLE, Watched } from "./support";

let folder: Folder;
let chromium: Browser;
let server: Running;
let url: string;

beforeAll(async () => {
  folder = new Folder();
  await folder.run("run", "study.toml", "--out", "a.stacklab", "--seed", "1");
  server = new Running(folder, "serve", "--listen", ":0");
  url = (await server.says(/http:\S+/));
  chromium = await browser();
});

afterAll(async () => {
  server?.stop();
  await chromium?.close();
  folder?.remove();
});

test("a campaign in progress is followed run by run, and ends with the figures of its report", async () => {
  const page = await Watched.open(chromium);
  await page.tab.goto(url);
  const campaign = new Running(folder, "run", "study.toml", "--out", "live.stacklab", "--seed", "2", "--set", "blocks.min=10", "--set", "blocks.max=10");
  // It comes into the list by itself.
  await page.tab.click('tbody a:text-is("live.stacklab")', { timeout: 20_000 });
  const runs = async () => Number(await page.tab.getAttribute(".live[data-runs]", "data-runs"));
  await page.tab.waitForSelector(".live[data-runs]");
  const seen = [await runs()];
  await page.tab.waitForSelector('.live:has-text("running")');
  while (!campaign.ended) {
    await new Promise((done) => setTimeout(done, 200));
    const now = await runs();
    if (now !== seen.at(-1)) seen.push(now);
  }
  await campaign.end();
  // It grew while the campaign was going on, without being loaded again.
  expect(seen.length).toBeGreaterThan(2);
  expect([...seen].sort((a, b) => a - b)).toEqual(seen);
  const findings = fitted(await folder.json("report", "live.stacklab"));
  await page.tab.waitForSelector(`.live[data-runs="${findings.valid_runs}"]`, { timeout: 20_000 });
  await page.tab.waitForSelector('.live:has-text("ended")');
  await page.tab.selectOption('select[name="metric"]', "rtt");
  await page.tab.selectOption('select[name="transport"]', "udp");
  const times = (await page.tab.textContent("#explorer table caption"))!.startsWith("RTT in us:") ? 1000 : 1;
  for (const { cell, estimate } of findings.cells.filter(({ metric, cell }) => metric === "rtt" && cell.transport === "udp")) {
    const column = cell.family === "ipv4" ? 0 : 1;
    const row = page.tab.locator("#explorer table tbody tr").filter({ has: page.tab.locator(`th:text-is("${cell.size} B")`) });
    const text = (await row.locator("td").nth(column).textContent())!;
    expect(text).toContain(`(${estimate.n})`);
    expect(Math.abs(first(text) / (times * estimate.mean!) - 1)).toBeLessThan(0.01);
  }
  expect(await page.barriers()).toEqual([]);
  await page.fine();
  await page.close();
});

test("a run's detail is asked of the server, whichever run it is", async () => {
  const page = await Watched.open(chromium);
  await page.tab.goto(url + "#c=a.stacklab&run=2.1");
  await page.tab.waitForSelector("article.detail h4");
  expect(await page.tab.textContent("article.detail h3")).toContain("block 3");
  expect(await page.tab.$$eval("article.detail section details", (all) => all.length)).toBe(2);
  await page.fine();
  await page.close();
});

test("two campaigns are compared as `stacklab compare` does", async () => {
  copyFileSync(folder.at("a.stacklab"), folder.at("b.stacklab"));
  const page = await Watched.open(chromium);
  await page.tab.goto(url);
  await page.tab.check('input[aria-label="compare a.stacklab"]');
  await page.tab.check('input[aria-label="compare b.stacklab"]');
  await page.tab.click('button:has-text("compare the two")');
  await page.tab.waitForSelector('h2:has-text("Summary")');
  const summary = (await folder.run("compare", "a.stacklab", "b.stacklab", "--format", "markdown")).split("## Summary")[1]!;
  const points = summary.trim().split("\n").filter((line) => line.startsWith("- ")).map((line) => line.slice(2).replaceAll("\\", ""));
  expect(points.length).toBeGreaterThan(3);
  expect(await page.tab.$$eval("h2:last-of-type ~ ul li", (all) => all.map((one) => one.textContent))).toEqual(points);
  expect(await page.barriers()).toEqual([]);
  await page.fine();
  await page.close();
});

test("the list has each record's state and answer, and links that open in another tab", async () => {
  const page = await Watched.open(chromium);
  await page.tab.goto(url);
  const row = page.tab.locator('tr:has(a:text-is("a.stacklab"))');
  await row.locator('.live:text-is("ended")').waitFor();
  expect(await row.textContent()).toMatch(/comparisons? answered/);
  const [other] = await Promise.all([page.context.waitForEvent("page"), row.locator("a").click({ modifiers: ["ControlOrMeta"] })]);
  await other.waitForSelector("#explorer table");
  expect(await other.textContent("h1")).toBe(TITLE);
  await page.fine();
  await page.close();
});

test("a campaign that was interrupted is listed as such", async () => {
  const campaign = new Running(folder, "run", "study.toml", "--out", "cut.stacklab", "--seed", "3", "--set", "blocks.min=40", "--set", "blocks.max=40");
  const page = await Watched.open(chromium);
  await page.tab.goto(url);
  const row = page.tab.locator('tr:has(a:text-is("cut.stacklab"))');
  await row.locator('.live:text-is("running")').waitFor();
  campaign.interrupt();
  await row.locator('.live:text-is("interrupted")').waitFor();
  expect(campaign.ended).toBe(true);
  await page.fine();
  await page.close();
});

test("the older of two records is A, and they can be swapped", async () => {
  await folder.run("run", "study.toml", "--out", "later.stacklab", "--seed", "4", "--set", "blocks.min=2", "--set", "blocks.max=2");
  const page = await Watched.open(chromium);
  await page.tab.goto(url);
  // In the order of the list, the newer one first.
  await page.tab.check('input[aria-label="compare later.stacklab"]');
  await page.tab.check('input[aria-label="compare a.stacklab"]');
  await page.tab.click('button:has-text("compare the two")');
  const arms = () => page.tab.locator("p code").allTextContents();
  await page.tab.waitForSelector('p.answer:has-text("B is better in")');
  expect(await arms()).toEqual(["a.stacklab", "later.stacklab"]);
  await page.tab.click('button:text-is("swap A and B")');
  await page.tab.waitForSelector('.facts dd:has-text("later.stacklab:") >> nth=0');
  expect(await arms()).toEqual(["later.stacklab", "a.stacklab"]);
  await page.fine();
  await page.close();
});

test("hostile names and records are shown as what they are", async () => {
  const name = "<img src=x onerror='window.harmed=1'>&#.stacklab";
  copyFileSync(folder.at("a.stacklab"), folder.at(name));
  writeFileSync(folder.at("broken.stacklab"), "SQLite format 3\0 and then nothing of it");
  const page = await Watched.open(chromium);
  await page.tab.goto(url);
  await page.tab.waitForSelector("tbody tr >> nth=2");
  const names = await page.tab.$$eval("tbody th", (all) => all.map((one) => one.textContent));
  expect(names).toContain(name);
  expect(await page.tab.textContent('tr:has-text("broken.stacklab")')).toMatch(/broken\.stacklab.*(damaged|not a|no record|cannot|could not)/);
  await page.tab.click(`tbody a >> text=${name}`);
  await page.tab.waitForSelector("h1");
  expect(await page.tab.textContent("h1")).toBe(TITLE);
  await page.fine();
  await page.close();
});

test("nothing is had from outside the folder, by other names, or without the token", async () => {
  const authorization = `Bearer ${new URL(url).searchParams.get("token")}`;
  const status = async (path: string) => (await fetch(new URL(path, url), { headers: { authorization } })).status;
  expect(await status("/api/campaign?name=a.stacklab")).toBe(200);
  for (const name of ["../a.stacklab", "..%2fa.stacklab", "%2fetc%2fpasswd", "study.toml", "", "a.stacklab%00"]) {
    expect(await status(`/api/campaign?name=${name}`), name).toBe(404);
  }
  for (const path of ["/study.toml", "/../study.toml", "/%2e%2e/study.toml", "/a.stacklab", "/api/"]) {
    expect(await status(path), path).toBe(404);
  }
  expect(await status("/api/events?name=b.toml")).toBe(404);
  expect(await status("/api/run?name=a.stacklab&block=999&position=0")).toBe(404);
  expect(await status("/api/run?name=a.stacklab&block=-1&position=x")).toBe(400);
  // A page of elsewhere whose name was made to lead here is told from this machine's own names.
  const curl = spawnSync("sh", ["-c", `printf 'GET / HTTP/1.1\\r\\nHost: example.org\\r\\nConnection: close\\r\\n\\r\\n' | timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/${new URL(url).port}; cat >&3; cat <&3'`], { encoding: "utf8" });
  expect(curl.stdout).toMatch(/^HTTP\/1.1 403/);

  const token = "abcdefghijklmnop0123";
  const guarded = new Running(folder, "serve", "--listen", ":0", "--token", token);
  try {
    const entry = await guarded.says(/http:\S+/);
    expect(entry).toContain(`?token=${token}`);
    const base = new URL("/", entry).href;
    for (const path of ["", "page.js", "api/campaigns", "api/events"]) {
      expect((await fetch(base + path)).status, path).toBe(403);
    }
    expect((await fetch(base + "?token=abcdefghijklmnop0124", { redirect: "manual" })).status).toBe(403);
    // Whatever was asked for, the way leads to this server's page: a path of two slashes would be another host's address.
    const welcome = await fetch(`${base}/example.org/?token=${token}`, { redirect: "manual" });
    expect([welcome.status, welcome.headers.get("location")]).toEqual([303, "/"]);
    const page = await Watched.open(chromium);
    // Without the token a person gets a page to enter it.
    await page.tab.goto(base);
    await page.tab.fill('input[name="token"]', token);
    await page.tab.click("button");
    await page.tab.waitForSelector("tbody a");
    expect(page.tab.url()).toBe(base);
    await page.context.clearCookies();
    page.errors.length = 0;
    await page.tab.goto(entry);
    await page.tab.click('tbody a:text-is("a.stacklab")');
    await page.tab.waitForSelector("#explorer table");
    expect(page.tab.url()).not.toContain(token);
    await page.fine();
    await page.close();
  } finally {
    guarded.stop();
  }
});
