// A campaign of ten thousand runs: how large its report is, and how soon the page answers.
import { spawn } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";
import { browser, Folder, large, program, Watched } from "./support";

/** Makes the report, and tells the most memory and the time that it took. */
function reported(folder: Folder): Promise<{ kib: number; ms: number }> {
  const begun = performance.now();
  const child = spawn(program, ["report", "large.stacklab", "--format", "html", "--out", "large.html"], { cwd: folder.path, stdio: "inherit" });
  let kib = 0;
  const look = setInterval(() => {
    try {
      kib = Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1] ?? kib);
    } catch {
      // It has ended.
    }
  }, 5);
  return new Promise((done, failed) => {
    child.on("exit", (code) => {
      clearInterval(look);
      if (code === 0) done({ kib, ms: Math.round(performance.now() - begun) });
      else failed(new Error(`report ended with ${code}`));
    });
  });
}

test("the page of ten thousand runs answers, from less than a megabyte", async () => {
  const folder = new Folder();
  const chromium = await browser();
  try {
    await folder.execute(large, ["large.stacklab", "10000"]);
    const { kib, ms } = await reported(folder);
    console.log(`reported in ${ms} ms with ${kib} KiB`);
    expect(kib).toBeGreaterThan(0);
    expect(kib).toBeLessThan(64 * 1024);
    // Three seconds are asked of a program that was built for use. This one was built for tests and runs beside others:
    // the limits here find what grows with the square of the runs.
    expect(ms).toBeLessThan(60_000);
    expect(statSync(folder.at("large.html")).size).toBeLessThan(1_000_000);
    const page = await Watched.open(chromium);
    await page.tab.goto("file://" + folder.at("large.html"));
    await page.tab.waitForSelector("#explorer table");
    const ready = Number(await page.tab.getAttribute("html", "data-ready"));
    const answered = await page.tab.evaluate(async () => {
      const begun = performance.now();
      const metric = document.querySelector<HTMLSelectElement>('select[name="metric"]')!;
      metric.value = "rtt";
      metric.dispatchEvent(new Event("change", { bubbles: true }));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      return performance.now() - begun;
    });
    expect(await page.tab.textContent("#explorer caption")).toContain("RTT in ");
    console.log(`ready after ${ready} ms, answered after ${Math.round(answered)} ms`);
    expect(ready).toBeLessThan(10_000);
    expect(answered).toBeLessThan(10_000);
    await page.fine();
    await page.close();
  } finally {
    await chromium.close();
    folder.remove();
  }
});
