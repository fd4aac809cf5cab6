import { type RefObject, useCallback, useEffect, useRef } from "react";

import { follows, type Seen } from "./follow.ts";

/** What of an element is seen now. */
const seenOf = ({ scrollTop, scrollHeight, clientHeight }: Element): Seen => ({ scrollTop, scrollHeight, clientHeight });

interface Follow {
  readonly place: RefObject<HTMLDivElement | null>;
  readonly onScroll: () => void;
  /** Goes to the end, and stays there. */
  readonly toEnd: () => void;
}

/** Keeps what is said at its end in sight, until a person scrolls up. */
export function useFollow(): Follow {
  const place = useRef<HTMLDivElement>(null);
  const stays = useRef(true);
  const before = useRef<Seen>({ scrollTop: 0, scrollHeight: 0, clientHeight: 0 });
  const look = useCallback((): void => {
    const at = place.current;
    if (at === null) {
      return;
    }
    // Whoever reads above sees the same lines while something above them changes; at the end it is the end that counts.
    at.style.overflowAnchor = stays.current ? "none" : "auto";
    if (stays.current) {
      at.scrollTop = at.scrollHeight;
    }
    before.current = seenOf(at);
  }, []);
  useEffect(() => {
    const at = place.current;
    const inner = at?.firstElementChild;
    if (!at || !inner) {
      return;
    }
    // What is said grows after it stands there, too: by pictures, and by what is asked of the server.
    const observer = new ResizeObserver(look);
    observer.observe(inner);
    observer.observe(at);
    return () => observer.disconnect();
  }, [look]);
  const onScroll = useCallback((): void => {
    const at = place.current;
    if (at !== null) {
      const now = seenOf(at);
      stays.current = follows(stays.current, before.current, now);
      before.current = now;
    }
  }, []);
  const toEnd = useCallback((): void => {
    stays.current = true;
    look();
  }, [look]);
  return { place, onScroll, toEnd };
}
