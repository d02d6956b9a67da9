import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AGAIN_MS } from "../src/serve/api";
import { CHANGES_MS, poll, RESTS_MS } from "../src/serve/polled";

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
  tab = new Tab();
  vi.stubGlobal("document", tab);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Polls answers that the test gives in advance, the last one for ever; an error is thrown. */
function polled(answers: (number | Error)[]) {
  const [found, failed] = [[] as number[], [] as string[]];
  let asked = 0;
  const ask = async () => {
    const answer = answers[Math.min(asked++, answers.length - 1)]!;
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const stop = poll(ask, (answer) => answer < 2, (answer) => found.push(answer), (reason) => failed.push(reason));
  return { found, failed, stop, asked: () => asked };
}

test("an answer that changes is asked for often, and one that rests seldom", async () => {
  const { found, asked, stop } = polled([1, 2]);
  await vi.advanceTimersByTimeAsync(CHANGES_MS - 1);
  expect(found).toEqual([1]);
  await vi.advanceTimersByTimeAsync(1);
  expect(found).toEqual([1, 2]);
  await vi.advanceTimersByTimeAsync(RESTS_MS - 1);
  expect(asked()).toBe(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(asked()).toBe(3);
  stop();
  await vi.advanceTimersByTimeAsync(10 * RESTS_MS);
  expect(asked()).toBe(3);
});

test("a failure is said until an answer comes", async () => {
  const { found, failed } = polled([new Error("away"), 1]);
  await vi.advanceTimersByTimeAsync(0);
  expect([found, failed]).toEqual([[], ["Error: away"]]);
  await vi.advanceTimersByTimeAsync(AGAIN_MS);
  expect([found, failed]).toEqual([[1], ["Error: away", ""]]);
});

test("a tab that nobody sees asks for nothing", async () => {
  const { asked } = polled([1]);
  await vi.advanceTimersByTimeAsync(0);
  tab.show(false);
  await vi.advanceTimersByTimeAsync(10 * RESTS_MS);
  expect(asked()).toBe(1);
  tab.show(true);
  expect(asked()).toBe(2);
});

test("an answer that comes after the end is dropped", async () => {
  const { found, stop } = polled([1]);
  stop();
  await vi.advanceTimersByTimeAsync(RESTS_MS);
  expect(found).toEqual([]);
});
