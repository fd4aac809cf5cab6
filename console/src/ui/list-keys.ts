import { useEffect } from "react";

import { entryOf, opened } from "./opened-rows.ts";

/** Whether a key is typed into something; an editor in a shadow root is seen only in the path of the event. */
export const isTyping = (event: Event): boolean => {
  const [target] = event.composedPath();
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
};

/** Whether nobody has the focus, as after a page came. */
const isFree = (): boolean => document.activeElement === null || document.activeElement === document.body;

/** Whoever opened a row with the keys and comes back is on it again, once it is there; unless they went elsewhere meanwhile. */
function comeBack(): () => void {
  const href = opened.of(entryOf(history.state));
  if (href === undefined) {
    return () => undefined;
  }
  const isDone = (): boolean => {
    if (!isFree()) {
      return true;
    }
    const row = [...document.querySelectorAll<HTMLElement>("[data-row]")].find((one) => one.getAttribute("href") === href);
    row?.focus();
    return row !== undefined;
  };
  if (isDone()) {
    return () => undefined;
  }
  const observer = new MutationObserver(() => isDone() && observer.disconnect());
  observer.observe(document.body, { childList: true, subtree: true });
  return () => observer.disconnect();
}

/** Remembers a row that is opened with the keys: such a click has no pointer. */
function remember(event: MouseEvent): void {
  const row = event.target instanceof Element ? event.target.closest("[data-row]") : null;
  const href = row?.getAttribute("href");
  if (event.detail === 0 && typeof href === "string") {
    opened.put(entryOf(history.state), href);
  }
}

/** `j` and `k` go through the rows of a list, each of which has a link; `/` goes to its search. Back leads to the row that was
 * opened. */
export function useListKeys(): void {
  useEffect(() => {
    const stop = comeBack();
    // Before the link changes the address.
    document.addEventListener("click", remember, { capture: true });
    return () => {
      stop();
      document.removeEventListener("click", remember, { capture: true });
    };
  }, []);
  useEffect(() => {
    const heard = (event: KeyboardEvent): void => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) {
        return;
      }
      if (event.key === "/") {
        const search = document.querySelector<HTMLElement>("[data-search]");
        if (search !== null) {
          event.preventDefault();
          search.focus();
        }
      } else if (event.key === "j" || event.key === "k") {
        const rows = [...document.querySelectorAll<HTMLElement>("[data-row], [data-conversations] a")];
        // A tree goes through its rows by itself once it has the keys.
        if (rows.length === 0) {
          document.querySelector<HTMLElement>("[role=tree]")?.focus();
        }
        const at = rows.indexOf(document.activeElement as HTMLElement);
        const next = event.key === "j" ? Math.min(at + 1, rows.length - 1) : Math.max(at - 1, 0);
        rows[next]?.focus();
      }
    };
    document.addEventListener("keydown", heard);
    return () => document.removeEventListener("keydown", heard);
  }, []);
}
