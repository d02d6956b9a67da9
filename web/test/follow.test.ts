import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AGAIN_MS, follow } from "../src/serve/api";
import { repeatedly } from "../src/serve/repeatedly";

/** A stream as the browser has it, told by the test how the server answers. */
class Source extends EventTarget {
  static readonly CLOSED = 2;
  static all: Source[] = [];
  readyState = 0;
  constructor(readonly url: string) {
    super();
    Source.all.push(this);
  }
  close() {
    this.readyState = 2;
  }
  /** The server refuses: the browser does not connect again by itself. */
  refuse() {
    this.readyState = 2;
    this.dispatchEvent(new Event("error"));
  }
  tell(count: number) {
    this.dispatchEvent(new MessageEvent("changed", { data: JSON.stringify({ count, running: false }) }));
  }
  static open = () => Source.all.filter((source) => source.readyState !== 2);
}

class Tab extends EventTarget {
  hidden = false;
  show(isShown: boolean) {
    this.hidden = !isShown;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

let tab: Tab;

beforeEach(() => {
  vi.useFakeTimers();
  Source.all = [];
  tab = new Tab();
  vi.stubGlobal("EventSource", Source);
  vi.stubGlobal("document", tab);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("who was refused asks again, until it is told to end", () => {
  const [counts, lost] = [[] as number[], [] as boolean[]];
  const stop = follow("a&b.stacklab", ({ count }) => counts.push(count), (isLost) => lost.push(isLost));
  expect(Source.all.map(({ url }) => url)).toEqual(["/api/events?name=a%26b.stacklab"]);
  Source.all[0]!.tell(1);
  Source.all[0]!.refuse();
  vi.advanceTimersByTime(AGAIN_MS - 1);
  expect(Source.all.length).toBe(1);
  vi.advanceTimersByTime(1);
  Source.all[1]!.dispatchEvent(new Event("open"));
  Source.all[1]!.tell(2);
  expect([counts, lost]).toEqual([[1, 2], [true, false]]);
  Source.all[1]!.refuse();
  stop();
  vi.advanceTimersByTime(10 * AGAIN_MS);
  tab.show(true);
  expect([Source.all.length, Source.open().length]).toEqual([2, 0]);
});

test("a stream that only broke is left to the browser", () => {
  follow(undefined, () => undefined, () => undefined);
  Source.all[0]!.dispatchEvent(new Event("error"));
  vi.advanceTimersByTime(10 * AGAIN_MS);
  expect(Source.all.length).toBe(1);
});

test("a tab that nobody sees holds no connection", () => {
  follow(undefined, () => undefined, () => undefined);
  tab.show(false);
  expect(Source.open().length).toBe(0);
  vi.advanceTimersByTime(10 * AGAIN_MS);
  expect(Source.open().length).toBe(0);
  tab.show(true);
  expect(Source.open().length).toBe(1);
});

test("what is asked for repeatedly is asked at once, after its time, and once more where it was called for meanwhile", async () => {
  let asked = 0;
  let answer: (again: number | undefined) => void = () => undefined;
  const repeated = repeatedly(() => {
    asked += 1;
    return new Promise((resolve) => (answer = resolve));
  });
  const answered = async (again?: number) => {
    answer(again);
    await vi.advanceTimersByTimeAsync(0);
  };
  expect(asked).toBe(1);
  repeated.now();
  repeated.now();
  expect(asked).toBe(1);
  await answered();
  expect(asked).toBe(2);
  await answered(500);
  await vi.advanceTimersByTimeAsync(499);
  expect(asked).toBe(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(asked).toBe(3);
  await answered();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toBe(3);
  repeated.now();
  repeated.end();
  await answered(1);
  repeated.now();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toBe(4);
});
