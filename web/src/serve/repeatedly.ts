// Polling: a request now, on demand, and after a delay that the last answer gives.

export interface Repeated {
  /** Requests now; while a request is running, once more after it. */
  now: () => void;
  /** Stops. */
  end: () => void;
}

/** Starts at once. `ask` gives the milliseconds to the next request, or `undefined` for on demand only. */
export function repeatedly(ask: () => Promise<number | undefined>): Repeated {
  let isBusy = false;
  let isStale = false;
  let hasEnded = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const now = () => {
    clearTimeout(timer);
    if (hasEnded) return;
    if (isBusy) {
      isStale = true;
      return;
    }
    isBusy = true;
    isStale = false;
    void ask().then((again) => {
      isBusy = false;
      if (hasEnded) return;
      if (isStale) now();
      else if (again !== undefined) timer = setTimeout(now, again);
    });
  };
  now();
  return {
    now,
    end: () => {
      hasEnded = true;
      clearTimeout(timer);
    },
  };
}
