// The report of a real campaign, as a file of its own, in a real browser.
import { readFileSync, statSync, writeFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Page } from "../src/document";
import { browser, first, fitted, Folder, TITLE, Watched, type Findings } from "./support";

let folder: Folder;
let chromium: Browser;
let findings: Findings;
let url: string;

beforeAll(async () => {
  folder = new Folder();
  await folder.run("run", "study.toml", "--out", "a.stacklab", "--seed", "1");
  await folder.run("report", "a.stacklab", "--format", "html", "--out", "a.html");
  findings = fitted(await folder.json("report", "a.stacklab"));
  url = "file://" + folder.at("a.html");
  chromium = await browser();
});

afterAll(async () => {
  await chromium?.close();
  folder?.remove();
});

const opened = (hash = "", width = 1280, scheme: "light" | "dark" = "light") => Watched.page(chromium, url + hash, "#explorer table", width, scheme);

/** What people read for the study's metrics. */
const LABELS: Record<string, string> = { throughput: "throughput", loss: "loss", one_way_delay: "one-way delay", cpu_sender: "sender CPU", rtt: "RTT" };

/** Shares are shown in per cent, and times below a millisecond in microseconds. */
function shownAs(metric: string): { unit: string; factor: number } {
  const means = findings.cells.flatMap((row) => (row.metric === metric && row.estimate.mean !== null ? [row.estimate.mean] : []));
  if (metric === "loss") return { unit: "%", factor: 100 };
  if (metric === "throughput") return { unit: "Mbit/s", factor: 1 };
  if (metric === "cpu_sender") return { unit: "% of a core", factor: 1 };
  return Math.max(...means) < 1 ? { unit: "us", factor: 1000 } : { unit: "ms", factor: 1 };
}

/** Whether two figures are the same but for the rounding of a factor. */
const same = (shown: number, exact: number) => Math.abs(shown - exact) <= 1e-9 * Math.abs(exact);

test("it opens from a file with the verdict first, asks nothing of the network and takes no text for more", async () => {
  const page = await opened();
  expect(await page.tab.title()).toBe(TITLE);
  expect(await page.tab.textContent("h1")).toBe(TITLE);
  expect(await page.tab.$$eval("h2", (all) => all.slice(0, 2).map((one) => one.textContent))).toEqual(["Verdicts", "Differences"]);
  const sentences = await page.tab.$$eval(".sentences li", (all) => all.map((one) => one.textContent));
  const groups = new Set(findings.comparisons.map(({ metric, baseline }) => `${LABELS[metric]}, ${baseline.transport.toUpperCase()}, IPv6 vs IPv4`));
  expect(sentences).toHaveLength(groups.size);
  for (const sentence of sentences) expect(groups).toContain(sentence!.split(":")[0]);
  expect(page.asked.filter((asked) => !/^(file|data|blob):/.test(asked))).toEqual([]);
  await page.fine();
  await page.close();
});

test("the matrix has every verdict in words and signs, and leads to its graph", async () => {
  const page = await opened();
  const cells = await page.tab.$$(".matrix tbody button");
  expect(cells).toHaveLength(findings.comparisons.length);
  const better = findings.comparisons.filter(({ verdict }) => typeof verdict === "object" && "better" in verdict).length;
  const told = await page.tab.$$eval(".matrix tbody button", (all) => all.map((one) => one.textContent!));
  // In parentheses where the difference is within the margin.
  expect(told.filter((text) => /^\s*(?:[▲▼]+\s*|\()IPv[46]/.test(text))).toHaveLength(better);
  expect(told.every((text) => text.trim() !== "")).toBe(true);
  await page.tab.click('.matrix tbody tr:has-text("RTT, UDP") button >> nth=1');
  expect(await page.tab.inputValue('select[name="metric"]')).toBe("rtt");
  expect(await page.tab.inputValue('select[name="transport"]')).toBe("udp");
  await page.fine();
  await page.close();
});

/** Rows of the forest plot: label, drawing, figures and verdict. */
const FOREST = "table.forest tbody tr:not(.axis, .control)";

test("each difference is drawn beside its figures and its verdict, on a screen, a phone and paper", async () => {
  for (const [width, media] of [[1280, "screen"], [390, "screen"], [718, "print"]] as const) {
    const page = await opened("", width);
    await page.tab.emulateMedia({ media });
    const rows = await page.tab.locator(FOREST).all();
    const measured = findings.comparisons.map(({ metric, baseline }) => `${metric} ${baseline.transport}`);
    expect(rows.length).toBe(new Set(measured).size);
    for (const row of rows) {
      expect(await row.textContent()).toMatch(/(higher|lower) is better.*\[.*\].*(better|equivalent|inconclusive|answered|none seen)/s);
      const [label, plot, figures] = [(await row.locator("th").boundingBox())!, (await row.locator("svg").boundingBox())!, (await row.locator(".number").boundingBox())!];
      expect(plot.width).toBeGreaterThan(width * (width < 640 ? 0.9 : 0.4));
      expect(figures.x + figures.width).toBeLessThanOrEqual(width);
      // On a phone the label is above its row.
      if (width < 640) expect(label.y + label.height).toBeLessThanOrEqual(plot.y);
      else expect(label.x + label.width).toBeLessThanOrEqual(plot.x + 1);
    }
    // No text is scaled with the plot.
    expect(await page.tab.$eval("table.forest .tick", (one) => getComputedStyle(one).fontSize)).toBe("11px");
    await page.fine();
    await page.close();
  }
});

test("a legend names arms by their family, though a run in turns has arms against themselves", async () => {
  await folder.run("run", "study.toml", "--out", "self.stacklab", "--seed", "1", "--set", "blocks.schedule='interleaved'", "--set", "blocks.max=2", "--set", "blocks.min=2");
  await folder.run("report", "self.stacklab", "--format", "html", "--out", "self.html");
  const page = await Watched.page(chromium, "file://" + folder.at("self.html"), "#explorer table");
  expect(await page.tab.locator(".legend:not(.forest) li").allTextContents()).toEqual([" IPv4", " IPv6", "dashed: limit by headers"]);
  expect(await page.tab.$('select[name="replica"]')).toBeNull();
  expect(await page.tab.textContent("#runs tbody")).toContain("self 1");
  await page.close();
});

test("the matrix of a phone keeps its first column in view", async () => {
  const page = await opened("", 360);
  const head = page.tab.locator(".matrix tbody th").first();
  const before = (await head.boundingBox())!;
  expect(before.width).toBeLessThan(180);
  await page.tab.$eval(".scroll:has(.matrix)", (one) => (one.scrollLeft = 1000));
  expect((await head.boundingBox())!.x).toBe(before.x);
  await page.close();
});

test("figures, runs and the testbed of a phone need no scrolling to the side", async () => {
  const page = await opened("", 390);
  for (const name of ["Figures of throughput", "List of runs", "Drawing of the testbed"]) {
    const region = page.tab.locator(`.scroll[aria-label="${name}"]`);
    expect(await region.evaluate((one) => one.scrollWidth <= one.clientWidth), name).toBe(true);
  }
  const show = (await page.tab.locator("#runs tbody button").first().boundingBox())!;
  expect(show.x + show.width).toBeLessThanOrEqual(390);
  expect(await page.tab.$$eval("#explorer tbody td", (all) => all.map((one) => one.getAttribute("data-label")))).toContain("verdict");
  await page.fine();
  await page.close();
});

test("every metric and transport that is chosen shows the figures of the JSON report", async () => {
  const page = await opened();
  let compared = 0;
  for (const metric of new Set(findings.cells.map((row) => row.metric))) {
    for (const transport of ["tcp", "udp"]) {
      await page.tab.selectOption('select[name="metric"]', metric);
      await page.tab.selectOption('select[name="transport"]', transport);
      const wanted = findings.cells.filter((row) => row.metric === metric && row.cell.transport === transport);
      if (wanted.length === 0) continue;
      const table = page.tab.locator("#explorer table");
      expect(await table.locator("caption").textContent()).toContain(`${LABELS[metric]} in ${shownAs(metric).unit}:`);
      const arms = await table.locator("thead th").allTextContents();
      for (const { cell, estimate } of wanted) {
        const column = arms.findIndex((arm) => arm.trim().toLowerCase() === cell.family);
        const row = table.locator("tbody tr").filter({ has: page.tab.locator(`th:text-is("${cell.size} B")`) });
        const text = (await row.locator("th, td").nth(column).textContent())!;
        expect(text, `${metric} ${transport}`).toContain(`(${estimate.n})`);
        const shown = first(text);
        const exact = shownAs(metric).factor * estimate.mean!;
        const decimals = /\.(\d+)/.exec(text.split("±")[0]!)?.[1]?.length ?? 0;
        expect(Math.abs(shown - exact), `${text} is not ${exact}`).toBeLessThanOrEqual(0.5 * 10 ** -decimals + 1e-9);
        compared += 1;
      }
    }
  }
  expect(compared).toBe(findings.cells.length);
  await page.fine();
  await page.close();
});

test("of many mechanisms a summary fits a screen, details are folded, and the explorer's rows are arms", async () => {
  // The report of this campaign, as if each cell had been measured with thirteen mechanisms.
  const html = readFileSync(folder.at("a.html"), "utf8");
  const made = html.replace(/(<script type="application\/json" id="document">)(.*?)(<\/script>)/s, (_, begin: string, json: string, end: string) => {
    const page = JSON.parse(json) as Page;
    const names = Array.from({ length: 13 }, (_, place) => `m${place}`);
    const [cells, { length }] = [page.cells, page.cells];
    page.factors.push({ name: "mechanism", label: "mechanism", levels: names, labels: names, alone: names, numbers: null });
    page.cells = names.flatMap((_, level) => cells.map((cell) => ({ ...cell, levels: [...cell.levels, level] })));
    page.estimates = names.flatMap((_, level) => page.estimates.map((one) => ({ ...one, cell: one.cell + level * length })));
    const { comparisons, forest } = page;
    page.pairs = names.slice(1).map((name) => `${name} vs m0`);
    page.comparisons = names.slice(1).flatMap((_, level) =>
      comparisons.map((one) => ({ ...one, factor: page.factors.length - 1, candidate: one.baseline + (level + 1) * length })),
    );
    page.forest = page.pairs.flatMap((_, pair) => forest.map((row) => ({ ...row, pair, outcome: "inconclusive" as const })));
    page.matrix.rows = [];
    page.sentences = [];
    page.testbed.sentence = names.join("\n");
    const rows = names.map((name) => [name, "91.6 ?"]);
    page.levels = [
      { kind: "heading", content: "Each mechanism vs m0" },
      { kind: "table", content: { columns: [["mechanism", false], ["RTT, us", false]], rows, footnotes: [] } },
    ];
    return begin + JSON.stringify(page).replaceAll("<", "\\u003c") + end;
  });
  writeFileSync(folder.at("many.html"), made);
  for (const width of [1280, 390]) {
    const page = await Watched.page(chromium, "file://" + folder.at("many.html"), "#explorer table", width);
    const overview = (await page.tab.locator(".overview").boundingBox())!;
    expect(await page.tab.locator(".overview tbody tr").count()).toBe(12);
    if (width === 1280) expect(overview.y + overview.height).toBeLessThan(1000);
    const levels = (await page.tab.getByRole("region", { name: "Table: mechanism, RTT, us" }).boundingBox())!;
    expect(levels.y).toBeGreaterThan(overview.y + overview.height);
    expect(levels.y).toBeLessThan((await page.tab.locator("#pairs-title").boundingBox())!.y);
    expect(await page.tab.getByRole("cell", { name: "91.6 ?", exact: true }).count()).toBe(13);
    expect(await page.tab.locator("details.pair[open]").count()).toBe(0);
    await page.tab.locator(".overview tbody a").first().click();
    expect(await page.tab.isVisible("#pair-0 table.forest")).toBe(true);
    expect(await page.tab.locator(".arms tbody tr").count()).toBe(26);
    expect(await page.tab.textContent("section:has(#place-title) summary >> nth=0")).toBe("13 of them");
    for (const row of await page.tab.locator(".arms tbody tr").all()) expect((await row.boundingBox())!.height).toBeLessThan(120);
    expect(await page.tab.locator(".frame [data-grey]").count()).toBe(20);
    await page.tab.locator(".arms tbody button[aria-pressed=false]").first().click();
    expect(await page.tab.locator(".arms tbody button[aria-pressed=true]").count()).toBe(6);
    expect(await page.barriers()).toEqual([]);
    expect(await page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await page.fine();
    await page.close();
  }
});

test("what comparisons rest on is told without a pointer", async () => {
  const page = await opened("#metric=throughput&f.transport=tcp");
  await page.tab.focus("#explorer details.remarks summary");
  await page.tab.keyboard.press("Enter");
  const told = await page.tab.locator("#explorer details.remarks dd").allTextContents();
  const wanted = findings.comparisons.filter(({ metric, baseline }) => metric === "throughput" && baseline.transport === "tcp");
  expect(told).toHaveLength(wanted.length);
  for (const text of told) expect(text).toMatch(/too few blocks \(4 of 6\); p of no difference (< )?[0-9.]+, adjusted/);
  await page.fine();
  await page.close();
});

test("pointer and keys tell a point's exact figure, its runs and its interval", async () => {
  const page = await opened("#metric=throughput&f.transport=tcp");
  const graph = page.tab.locator(".frame");
  await graph.focus();
  await page.tab.keyboard.press("ArrowRight");
  const told = (await page.tab.textContent("[data-tip]"))!;
  const row = findings.cells.find(({ metric, cell }) => metric === "throughput" && cell.transport === "tcp" && cell.family === "ipv4" && cell.size === 128)!;
  expect(told).toContain(`IPv4, 128 B: ${row.estimate.mean} Mbit/s`);
  expect(told).toContain(`n ${row.estimate.n}, 95 % interval ${row.estimate.interval!.low} to ${row.estimate.interval!.high}`);
  expect(told).toContain("limit by headers 58.7");
  const spot = (await page.tab.locator(".frame svg > circle").boundingBox())!;
  await page.tab.keyboard.press("Escape");
  expect(await page.tab.$("[data-tip]")).toBeNull();
  await page.tab.mouse.move(spot.x + spot.width / 2, spot.y + spot.height / 2);
  expect(await page.tab.textContent("[data-tip]")).toBe(told);
  await page.fine();
  await page.close();
});

test("what is shown is in the address, and comes back from it", async () => {
  const page = await opened();
  await page.tab.selectOption('select[name="metric"]', "one_way_delay");
  await page.tab.selectOption('select[name="transport"]', "udp");
  await page.tab.check('input[name="logy"]');
  await page.tab.uncheck('input[name="intervals"]');
  const [hash, graph] = [new URL(page.tab.url()).hash, await page.tab.innerHTML(".frame")];
  const again = await opened(hash);
  expect(await again.tab.inputValue('select[name="metric"]')).toBe("one_way_delay");
  expect(await again.tab.isChecked('input[name="logy"]')).toBe(true);
  expect(await again.tab.innerHTML(".frame")).toBe(graph);
  await again.fine();
  await page.close();
  await again.close();
});

test("what is shown is downloaded as CSV, SVG and PNG", async () => {
  const page = await opened("#metric=rtt&f.transport=udp");
  const download = async (name: string) => {
    const [file] = await Promise.all([page.tab.waitForEvent("download"), page.tab.click(`.downloads button:text-is("${name}")`)]);
    expect(file.suggestedFilename()).toMatch(new RegExp(`^RTT-UDP[a-z-]*\\.${name.toLowerCase()}$`));
    return readFileSync(await file.path());
  };
  const [header, ...rows] = (await download("CSV")).toString().trimEnd().split("\r\n").map((line) => line.split(","));
  const wanted = findings.cells.filter(({ metric, cell }) => metric === "rtt" && cell.transport === "udp");
  expect(rows).toHaveLength(wanted.length);
  const column = (name: string) => header!.indexOf(name);
  for (const { cell, estimate } of wanted) {
    const row = rows.find((fields) => fields[column("size")] === String(cell.size) && fields[column("line")] === cell.family)!;
    const { unit, factor } = shownAs("rtt");
    expect([row[column("metric")], row[column("unit")]]).toEqual(["rtt", unit]);
    expect(same(Number(row[column("mean")]), factor * estimate.mean!), row.join()).toBe(true);
    expect(same(Number(row[column("low95")]), factor * estimate.interval!.low), row.join()).toBe(true);
    expect(Number(row[column("n")])).toBe(estimate.n);
  }
  const svg = (await download("SVG")).toString();
  const parsed = await page.tab.evaluate((text) => {
    const made = new DOMParser().parseFromString(text, "image/svg+xml");
    return { error: made.querySelector("parsererror")?.textContent, texts: [...made.querySelectorAll("text")].map((one) => one.textContent) };
  }, svg);
  expect(parsed.error).toBeUndefined();
  for (const text of ["IPv4", "IPv6", `RTT, ${shownAs("rtt").unit}`, "size, bytes (log scale)", "128", "1024"]) expect(parsed.texts).toContain(text);
  const png = await download("PNG");
  expect(png.subarray(1, 4).toString()).toBe("PNG");
  expect(png.readUInt32BE(16)).toBe(1520);
  await page.fine();
  await page.close();
});

test("a run in turns is shown with the slices of all arms", async () => {
  await folder.run("run", "study.toml", "--out", "turns.stacklab", "--seed", "1", "--set", "blocks.schedule='interleaved'", "--set", "blocks.max=2", "--set", "blocks.min=2");
  await folder.run("report", "turns.stacklab", "--format", "html", "--out", "turns.html");
  const page = await Watched.open(chromium, 1280, "light");
  await page.tab.goto("file://" + folder.at("turns.html"));
  await page.tab.waitForSelector("#explorer table");
  await page.tab.click('#runs tbody tr:has-text("stream") button');
  const slices = page.tab.locator('article.detail svg[aria-label^="Slices of 2 arms in turns"]');
  await slices.waitFor();
  expect(await slices.locator("g[stroke]").count()).toBe(2);
  expect(await page.tab.textContent("figure.slices figcaption")).toContain("payload received of each slice, Mbit/s");
  const said = await page.tab.textContent("article.detail");
  expect(said).toMatch(/All [0-9]+ one-way delays of the measured window/);
  expect(said).toContain("20 % trimmed means over the slices");
  await page.fine();
  await page.close();
});

test("a run is shown with its series, delays and CPU, in a file small enough to send", async () => {
  const page = await opened();
  await page.tab.click('#runs tbody tr:has-text("stream") button');
  const detail = page.tab.locator("article.detail");
  await detail.locator('svg[aria-label^="Histogram of"]').first().waitFor();
  expect(await detail.locator('svg[aria-label^="Payload in "]').count()).toBeGreaterThan(0);
  expect(await detail.locator('svg[aria-label^="Mean delay in "]').count()).toBeGreaterThan(0);
  expect(await detail.locator('svg[aria-label^="CPU:"]').count()).toBe(2);
  expect(await detail.textContent()).toContain("warm-up 30 ms, not counted");
  expect(await page.tab.$$eval(".testbed rect.host", (all) => all.length)).toBe(2);
  expect(statSync(folder.at("a.html")).size).toBeLessThan(1_000_000);
  await page.fine();
  await page.close();
});

test.each([["light", 1280], ["dark", 1280], ["light", 360], ["dark", 360]] as const)(
  "axe finds nothing serious in %s at %i pixels, and nothing is wider than the page",
  async (scheme, width) => {
    const page = await opened("#run=0.0", width, scheme);
    expect(await page.barriers()).toEqual([]);
    expect(await page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    expect(await page.tab.getAttribute("html", "data-theme")).toBe(scheme);
    await page.fine();
    await page.close();
  },
);

test("it prints without what can only be clicked, in ink on paper", async () => {
  const page = await opened("", 1280, "dark");
  await page.tab.emulateMedia({ media: "print", colorScheme: "dark" });
  expect(await page.tab.isVisible(".controls")).toBe(false);
  expect(await page.tab.isVisible(".matrix")).toBe(true);
  // As wide as A4 between its margins: the figure above its table, and every column on the paper.
  await page.tab.setViewportSize({ width: 718, height: 900 });
  const [figure, table] = [(await page.tab.locator("#explorer figure").boundingBox())!, (await page.tab.locator("#explorer table").boundingBox())!];
  expect(figure.y + figure.height).toBeLessThanOrEqual(table.y + 1);
  expect(table.x + table.width).toBeLessThanOrEqual(718);
  expect(await page.tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")).toBe("rgb(255, 255, 255)");
  expect((await page.tab.pdf()).subarray(0, 4).toString()).toBe("%PDF");
  await page.fine();
  await page.close();
});
