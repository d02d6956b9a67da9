// The report of an explanation: a waterfall and a flame graph of what was really sampled, in a real browser.
import { writeFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { browser, Folder, Watched } from "./support";

/** The part of `report --format json` that is compared with the page. */
interface Counted {
  cells: { messages: number; total: [number, number]; stages: { name: string; instructions: [number, number] }[]; functions: { name: string }[] }[];
}
interface Explained {
  explanations: { exact: Counted; why: { costs: { stages: { name: string; difference_ns: number }[]; busy: { ns: [number, number] }; stacks: { functions: string[]; ns: [number, number] }[] } } }[];
}

let folder: Folder;
let chromium: Browser;
let costs: Explained["explanations"][0]["why"]["costs"];
let counted: Counted["cells"][0];
let url: string;

beforeAll(async () => {
  folder = new Folder();
  await folder.run("explain", "udp", "--seconds", "8s", "--instructions", "--out", "why.stacklab");
  await folder.run("report", "why.stacklab", "--format", "html", "--out", "why.html");
  const json = JSON.parse(await folder.run("report", "why.stacklab", "--format", "json")) as Explained;
  costs = json.explanations[0]!.why.costs;
  counted = json.explanations[0]!.exact.cells[0]!;
  url = "file://" + folder.at("why.html");
  chromium = await browser();
});

afterAll(async () => {
  await chromium?.close();
  folder?.remove();
});

/** The samples, and the instructions below them. */
const SAMPLED = "#why details:nth-of-type(1)";
const INSTRUCTIONS = "#why details:nth-of-type(2)";

const opened = (hash = "", width = 1280, scheme: "light" | "dark" = "light") => Watched.page(chromium, url + hash, "#why svg.waterfall", width, scheme);

test("the waterfall has each stage with its figure, from one arm's cost to the other's", async () => {
  const page = await opened();
  const rows = await page.tab.$$eval(`${SAMPLED} svg.waterfall > g[class]`, (all) => all.map((one) => [...one.querySelectorAll("text")].map((text) => text.textContent!)));
  const named = new Map(rows.map(([name, shown]) => [name, shown]));
  expect(rows[0]).toEqual(["IPv4", `${costs.busy.ns[0].toFixed(0)} ns`]);
  expect(rows.at(-1)).toEqual(["IPv6", `${costs.busy.ns[1].toFixed(0)} ns`]);
  expect(costs.stages.length).toBeGreaterThan(5);
  for (const stage of costs.stages) expect(Number(/^[+-]\d+/.exec(named.get(stage.name)!)![0]), stage.name).toBe(Math.round(stage.difference_ns));
  expect(page.asked.filter((asked) => !/^(file|data|blob):/.test(asked))).toEqual([]);
  await page.fine();
  await page.close();
});

test("the flame graph is searched and zoomed, and the address says what is shown", async () => {
  const page = await opened();
  const names = () => page.tab.$$eval(`${SAMPLED} figure.flame svg title`, (all) => all.map((one) => one.textContent!.split(":")[0]!));
  const all = await names();
  const called = new Set(costs.stacks.flatMap((stack) => stack.functions));
  expect(all.length).toBeGreaterThan(20);
  for (const name of all) expect(called).toContain(name);
  await page.tab.fill(`${SAMPLED} figure.flame input[type="search"]`, "udp_sendmsg");
  expect(await page.tab.locator(`${SAMPLED} figure.flame g.hit`).count()).toBeGreaterThan(0);
  await page.tab.click(`${SAMPLED} figure.flame .hits button:has-text("udp_sendmsg: ")`);
  expect(await page.tab.textContent(`${SAMPLED} figure.flame .chosen`)).toContain("udp_sendmsg: IPv4 ");
  const below = await names();
  expect(below.length).toBeLessThan(all.length);
  expect(below).not.toContain("udpv6_sendmsg");
  // Who has the address sees the same.
  const again = await opened(new URL(page.tab.url()).hash);
  expect(await again.tab.textContent(`${SAMPLED} figure.flame .chosen`)).toBe(await page.tab.textContent(`${SAMPLED} figure.flame .chosen`));
  await again.close();
  await page.tab.click(`${SAMPLED} figure.flame button:has-text("show all")`);
  expect(await names()).toEqual(all);
  await page.tab.click(`${SAMPLED} figure.flame g:has(title:text-matches("^do_syscall_64: ")) rect`, { force: true });
  expect(await page.tab.textContent(`${SAMPLED} figure.flame .chosen`)).toContain("do_syscall_64: ");
  await page.fine();
  await page.close();
});

test("instructions have a waterfall from one family's count to the other's, and the functions of each stage", async () => {
  const page = await opened();
  await page.tab.click(`${INSTRUCTIONS} summary`);
  const rows = await page.tab.$$eval(`${INSTRUCTIONS} svg.waterfall > g[class]`, (all) => all.map((one) => [...one.querySelectorAll("text")].map((text) => text.textContent!)));
  const per = (count: number) => count / counted.messages;
  expect(rows[0]).toEqual(["IPv4", `${per(counted.total[0]).toFixed(0)} instructions`]);
  expect(rows.at(-1)).toEqual(["IPv6", `${per(counted.total[1]).toFixed(0)} instructions`]);
  const named = new Map(rows.map(([name, shown]) => [name, shown]));
  const route = counted.stages.find((stage) => stage.name === "route lookup")!;
  expect(Math.abs(Number(named.get("route lookup")) - per(route.instructions[1] - route.instructions[0]))).toBeLessThan(0.06);
  const titles = await page.tab.$$eval(`${INSTRUCTIONS} figure.flame svg title`, (all) => all.map((one) => one.textContent!));
  expect(titles.some((title) => /^udp_sendmsg \/ udpv6_sendmsg: IPv4 \d+ instructions, IPv6 \d+ instructions, /.test(title))).toBe(true);
  await page.fine();
  await page.close();
});

test("exact counts alone have a page", async () => {
  writeFileSync(folder.at("exact.html"), await folder.run("explain", "--exact", "udp", "--format", "html"));
  const page = await Watched.page(chromium, "file://" + folder.at("exact.html"), "#why svg.waterfall");
  expect(await page.tab.textContent("h1")).toBe("Instructions per message");
  expect(await page.tab.textContent("#why details p")).toContain("IPv6 takes +");
  expect(await page.tab.locator("#explorer, #runs").count()).toBe(0);
  expect(await page.barriers()).toEqual([]);
  await page.fine();
  await page.close();
});

test.each([["light", 1280], ["dark", 1280], ["light", 390]] as const)("axe finds nothing serious in %s at %i pixels, and nothing is wider than the page", async (scheme, width) => {
  const page = await opened("#find=ip", width, scheme);
  expect(await page.barriers()).toEqual([]);
  expect(await page.tab.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
  await page.close();
});
