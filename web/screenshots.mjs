// Pictures of the page: screenshots.mjs PROGRAM FOLDER PICTURES, where FOLDER holds report.html.
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";

const [program, folder, pictures] = process.argv.slice(2).map((path) => resolve(path));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

async function opened(url, { width = 1120, height = 760, colorScheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const tab = await context.newPage();
  await tab.goto(url);
  await tab.waitForSelector("#explorer table", { timeout: 60_000 });
  return tab;
}

const take = (tab, name) => tab.screenshot({ path: join(pictures, `${name}.png`) });
const report = "file://" + join(folder, "report.html");
const processes = [];
try {
  const tab = await opened(report);
  await take(tab, "report");
  await tab.goto(report + "#metric=throughput&f.transport=udp");
  await tab.locator("#explorer").scrollIntoViewIfNeeded();
  await tab.evaluate(() => document.getElementById("explorer").scrollIntoView());
  await tab.focus(".frame");
  await tab.keyboard.press("ArrowRight");
  await tab.keyboard.press("ArrowRight");
  await take(tab, "explorer");
  await tab.evaluate(() => document.activeElement.blur());
  await tab.click('#runs tbody tr:has-text("stream") button');
  await tab.waitForSelector("article.detail svg.plot");
  await tab.evaluate(() => document.querySelector("article.detail").scrollIntoView());
  await take(tab, "run");

  const phone = await opened(report + "#metric=rtt", { width: 390, height: 780, colorScheme: "dark" });
  await phone.evaluate(() => document.getElementById("explorer").scrollIntoView());
  await take(phone, "phone");

  const records = join(folder, "records");
  mkdirSync(records, { recursive: true });
  const server = spawn(program, ["serve", records, "--listen", ":0"], { stdio: ["ignore", "ignore", "pipe"] });
  processes.push(server);
  const url = await new Promise((found) => server.stderr.on("data", (bytes) => {
    const match = /http:\S+/.exec(bytes.toString());
    if (match) found(match[0]);
  }));
  const campaign = spawn(program, ["run", "--set", "testbed.rate=100 Mbit/s", "--out", join(records, "live.stacklab")], { stdio: "ignore" });
  processes.push(campaign);
  await new Promise((done) => setTimeout(done, 20_000));
  const live = await opened(url + "#c=live.stacklab&metric=throughput", { colorScheme: "dark" });
  await take(live, "live");
} finally {
  for (const one of processes) one.kill("SIGINT");
  await browser.close();
}
