// Something that is asked for now, again whenever it is called for, and after a time that its answer tells.

export interface Repeated {
  /** Asks now; where an answer is awaited, once more after it. */
  now: () => void;
  /** Asks no more. */
  end: () => void;
}

/** Asks at once. `ask` tells after how many ms it is to be asked again, or `undefined`: when it is called for. */
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
