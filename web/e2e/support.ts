// The real program in a folder of its own, and a real browser.
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium, type Browser, type BrowserContext, type Page as Tab } from "playwright-core";
import { expect } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const program = process.env["STACKLAB"] ?? join(root, "target/release/stacklab");
export const large = join(root, "target/release/examples/large");

/** A title that would do harm wherever it is taken for more than text. */
export const TITLE = "</script><script>window.harmed=1</script><img src=x onerror='window.harmed=1'> & IPv6";

/** Two families, two transports, two sizes, three probes' worth of metrics, in some seconds. */
export const STUDY = `title = ${JSON.stringify(TITLE)}
[testbed]
rate = "100 Mbit/s"
[factors]
family = ["ipv4", "ipv6"]
transport = ["tcp", "udp"]
size = [128, 1024]
[probe.stream]
metrics = ["throughput", "loss", "one_way_delay", "cpu_sender"]
length = { time = "150ms" }
warmup = "30ms"
interval = "10ms"
[probe.echo]
metrics = ["rtt"]
length = { time = "30ms" }
[blocks]
schedule = "sequential"
min = 4
max = 4
[[comparison]]
factor = "family"
baseline = "ipv4"
candidate = "ipv6"
margin = "2 %"
`;

export class Folder {
  // In memory: thousands of commits would else wait for the disk.
  readonly path = mkdtempSync(existsSync("/dev/shm") ? "/dev/shm/stacklab-web-" : "/tmp/stacklab-web-");

  constructor() {
    writeFileSync(join(this.path, "study.toml"), STUDY);
  }

  at(name: string): string {
    return join(this.path, name);
  }

  /**
   * Runs a program to its end; fails where that is not a good one. Gives its standard output. The runner hears from
   * this process meanwhile: after a minute of silence it takes it for lost.
   */
  async execute(file: string, args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(file, args, { cwd: this.path, encoding: "utf8", maxBuffer: 1 << 28 });
    return stdout;
  }

  run(...args: string[]): Promise<string> {
    return this.execute(program, args);
  }

  async json(...args: string[]): Promise<Findings> {
    return JSON.parse(await this.run(...args, "--format", "json")) as Findings;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** The part of `report --format json` that is compared with the page. */
export interface Findings {
  cells: {
    cell: { transport: string; size_of: string; size: number; family: string };
    metric: string;
    estimate: { n: number; mean: number | null; interval: { low: number; high: number } | null };
  }[];
  comparisons: {
    metric: string;
    baseline: Findings["cells"][0]["cell"];
    candidate: Findings["cells"][0]["cell"];
    fitted: [number, number] | null;
    verdict: string | Record<string, string>;
  }[];
  valid_runs: number;
}

/** Findings whose cells have the figures that fit their comparison, as every table and graph shows them. */
export function fitted(findings: Findings): Findings {
  const cells = findings.cells.map((row) => {
    const { mean, interval } = row.estimate;
    const comparison = findings.comparisons.find(
      ({ metric, baseline, candidate }) => metric === row.metric && (isSame(baseline, row.cell) || isSame(candidate, row.cell)),
    );
    if (!comparison?.fitted || mean === null) return row;
    const figure = comparison.fitted[isSame(comparison.candidate, row.cell) ? 1 : 0];
    const times = row.metric !== "loss" && mean > 0 ? figure / mean : 1;
    const half = interval === null ? 0 : Math.max(interval.high - mean, mean - interval.low) * times;
    const around = interval === null ? null : { low: Math.max(0, figure - half), high: figure + half };
    return { ...row, estimate: { ...row.estimate, mean: figure, interval: around } };
  });
  return { ...findings, cells };
}

function isSame(one: Findings["cells"][0]["cell"], other: Findings["cells"][0]["cell"]): boolean {
  return one.transport === other.transport && one.size_of === other.size_of && one.size === other.size && one.family === other.family;
}

/** A program that goes on, with what it says. */
export class Running {
  private readonly child: ChildProcess;
  said = "";

  constructor(folder: Folder, ...args: string[]) {
    this.child = spawn(program, args, { cwd: folder.path, stdio: ["ignore", "ignore", "pipe"] });
    this.child.stderr!.on("data", (bytes: Buffer) => (this.said += bytes.toString()));
  }

  get ended(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Waits until it has said something; fails when it ends before, or stays silent. */
  async says(text: RegExp): Promise<string> {
    for (let waited = 0; waited < 600; waited++) {
      const found = text.exec(this.said);
      if (found) return found[0];
      if (this.ended) break;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`no ${text} was said: ${this.said}`);
  }

  async end(): Promise<void> {
    for (let waited = 0; waited < 1200 && !this.ended; waited++) await new Promise((done) => setTimeout(done, 50));
    expect(this.child.exitCode, this.said).toBe(0);
  }

  /** As Ctrl-C does. */
  interrupt(): void {
    this.child.kill("SIGINT");
  }

  stop(): void {
    this.child.kill("SIGKILL");
  }
}

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

export function browser(): Promise<Browser> {
  if (!existsSync(executablePath)) throw new Error(`${executablePath} is missing: install the package chromium`);
  return chromium.launch({
    executablePath,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** A tab that remembers what went wrong in it and what it asked of the network. */
export class Watched {
  readonly errors: string[] = [];
  readonly asked: string[] = [];

  private constructor(readonly context: BrowserContext, readonly tab: Tab) {
    tab.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.errors.push(message.text());
    });
    tab.on("pageerror", (error) => this.errors.push(String(error)));
    tab.on("dialog", (dialog) => {
      this.errors.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    tab.on("request", (request) => this.asked.push(request.url()));
  }

  static async open(browser: Browser, width = 1280, colorScheme: "light" | "dark" = "light"): Promise<Watched> {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, acceptDownloads: true });
    return new Watched(context, await context.newPage());
  }

  /** Opens a page, and waits until it shows what a selector names. */
  static async page(browser: Browser, url: string, shown: string, width = 1280, colorScheme: "light" | "dark" = "light"): Promise<Watched> {
    const watched = await Watched.open(browser, width, colorScheme);
    await watched.tab.goto(url);
    await watched.tab.waitForSelector(shown);
    return watched;
  }

  /** Fails where anything went wrong, or a text was taken for more. */
  async fine(): Promise<void> {
    expect(this.errors).toEqual([]);
    expect(await this.tab.evaluate("window.harmed")).toBeUndefined();
  }

  /** What axe finds that is serious or critical. */
  async barriers(): Promise<string[]> {
    // Run by the debugger and not by the page, whose policy lets no script of elsewhere run.
    await this.tab.evaluate(axe);
    const found = (await this.tab.evaluate(
      "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.slice(0, 3).map((node) => node.html + ' ' + node.failureSummary) })))",
    )) as { id: string; impact: string; nodes: string[] }[];
    return found.filter(({ impact }) => impact === "serious" || impact === "critical").map((one) => JSON.stringify(one));
  }

  async close(): Promise<void> {
    await this.context.close();
  }
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8") + "; undefined";

/** The first figure of a text, whatever stands behind it. */
export function first(text: string): number {
  return Number(/-?[0-9.]+(e-?[0-9]+)?/.exec(text)?.[0]);
}
