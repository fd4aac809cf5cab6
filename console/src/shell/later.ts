import { useEffect, useState } from "react";

/** Gets what opens later while nobody waits for anything. Once it is there it opens at once: keys that follow are for it. */
export function useLater<Part>(load: () => Promise<Part>): Part | undefined {
  const [part, setPart] = useState<{ readonly part: Part }>();
  useEffect(() => {
    let isGone = false;
    const get = (): void => void load().then((loaded) => isGone || setPart({ part: loaded }), () => undefined);
    // Without the other, a moment later is as good.
    const timer = "requestIdleCallback" in window ? undefined : setTimeout(get, AFTER_MS);
    const idle = timer === undefined ? requestIdleCallback(get, { timeout: AFTER_MS }) : undefined;
    return () => {
      isGone = true;
      clearTimeout(timer);
      if (idle !== undefined) {
        cancelIdleCallback(idle);
      }
    };
  }, [load]);
  return part?.part;
}

/** How long it is waited for a quiet moment, in milliseconds. */
const AFTER_MS = 1_000;
