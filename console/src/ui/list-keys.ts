import { useEffect } from "react";

/** Whether a key is typed into something; an editor in a shadow root is seen only in the path of the event. */
export const isTyping = (event: Event): boolean => {
  const [target] = event.composedPath();
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
};

/** `j` and `k` go through the rows of a list, each of which has a link; `/` goes to its search. */
export function useListKeys(): void {
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
