/** What stands there before the pages do: their list, as somebody saw it last. Its links act at once. */
import type { Language } from "../words/language.ts";
import { loaderOf } from "./pages.ts";

/** A page in the list of pages. On a telephone there is room for some; the others stand behind *More*. */
export interface Listed {
  readonly to: string;
  readonly name: string;
  readonly phone?: boolean;
}

/** The list of pages in a language, and what it is called. */
export interface PageList {
  readonly language: Language;
  readonly label: string;
  readonly pages: readonly Listed[];
}

const LINK =
  "flex min-w-0 items-center justify-between rounded px-2 py-1 text-muted hover:bg-raised max-sm:min-h-11 max-sm:flex-auto max-sm:justify-center max-sm:gap-0.5 max-sm:px-1 max-sm:text-[11px] max-sm:whitespace-nowrap";

/** How the list looks, before and later. */
export const LOOK = {
  frame: "grid min-h-dvh grid-cols-[184px_minmax(0,1fr)] max-sm:block",
  list: "sticky top-0 flex h-dvh flex-col gap-0.5 border-r border-line px-2 py-3 max-sm:fixed max-sm:inset-x-0 max-sm:top-auto max-sm:bottom-0 max-sm:z-5 max-sm:h-auto max-sm:flex-row max-sm:border-t max-sm:border-r-0 max-sm:bg-surface max-sm:p-1",
  name: "px-2 pt-1 pb-3 text-large font-semibold max-sm:hidden",
  link: ({ phone }: Listed): string => (phone === true ? LINK : `${LINK} max-sm:hidden`),
  chosen: "bg-tint! text-accent! font-semibold",
} as const;

const KEPT = "pintle.pages";
const PLACE = "first-look";
/** A path of this server, and nothing that a browser reads as the address of another one. */
const PATH = /^\/(?:[\w-]+(?:\/[\w-]+)*)?$/;

/** Ends what the links do instead of leading somewhere as links do. */
const acts = new AbortController();

/** Reads a list that was kept, if it is one in `language`. Its links stay here. Pure. */
export function listOf(text: string | null, language: Language): PageList | undefined {
  try {
    const { language: said, label, pages } = JSON.parse(text ?? "{}") as Partial<PageList>;
    const isOne = ({ to, name }: Listed): boolean => typeof to === "string" && PATH.test(to) && typeof name === "string";
    return said === language && typeof label === "string" && Array.isArray(pages) && pages.length > 0 && pages.every(isOne) ? { language, label, pages } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the page at `path` stands behind the link to `to`. Pure. */
export const isChosen = (to: string, path: string): boolean => path === to || (to !== "/" && path.startsWith(`${to}/`));

/** Keeps the list for the next time, as `text`. Where there is no room for it, the pages come without. */
export function keepList(text: string): void {
  try {
    localStorage.setItem(KEPT, text);
  } catch {
    forgetList();
  }
}

/** Keeps it no longer: whoever comes next has to say who they are. */
export const forgetList = (): void => localStorage.removeItem(KEPT);

function mark(links: readonly HTMLAnchorElement[]): void {
  for (const link of links) {
    const chosen = isChosen(link.pathname, location.pathname);
    LOOK.chosen.split(" ").forEach((name) => link.classList.toggle(name, chosen));
    if (chosen) {
      link.setAttribute("aria-current", "page");
    } else {
      link.removeAttribute("aria-current");
    }
  }
}

function element<Name extends keyof HTMLElementTagNameMap>(name: Name, className: string, text = ""): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

/** Shows the list that was kept in `language`. Says whether there was one. */
export function drawList(language: Language): boolean {
  const kept = listOf(localStorage.getItem(KEPT), language);
  if (kept === undefined) {
    return false;
  }
  const { signal } = acts;
  // Over what is said meanwhile beside it.
  const place = element("div", `absolute inset-x-0 top-0 ${LOOK.frame}`);
  place.id = PLACE;
  const list = element("nav", LOOK.list);
  list.setAttribute("aria-label", kept.label);
  const links = kept.pages.map((page) => {
    const link = element("a", LOOK.link(page), page.name);
    link.href = page.to;
    const follow = (event: MouseEvent): void => {
      if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) {
        return;
      }
      event.preventDefault();
      if (link.href === location.href) {
        return;
      }
      // The pages open where somebody is by then, and hear of it where they are about to.
      history.pushState({}, "", page.to);
      dispatchEvent(new PopStateEvent("popstate"));
      loaderOf(page.to)?.().catch(() => undefined);
    };
    link.addEventListener("click", follow, { signal });
    return link;
  });
  mark(links);
  // Also where somebody goes back.
  addEventListener("popstate", () => mark(links), { signal });
  list.append(element("p", LOOK.name, "Pintle"), ...links);
  place.append(list);
  document.body.prepend(place);
  return true;
}

/** Lets the links lead as links do: the pages do not come, and another try may get them. */
export const letGo = (): void => acts.abort();

/** Takes it away: what comes stands there. Whoever had chosen a link with the keyboard is at the same one. */
export function dropList(): void {
  letGo();
  const place = document.getElementById(PLACE);
  const focused = document.activeElement;
  const at = focused instanceof HTMLAnchorElement && place?.contains(focused) === true ? focused.pathname : undefined;
  place?.remove();
  if (at !== undefined) {
    [...document.querySelectorAll<HTMLAnchorElement>("nav a")].find(({ pathname }) => pathname === at)?.focus();
  }
}
