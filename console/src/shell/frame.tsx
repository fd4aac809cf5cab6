import { useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useRouter } from "@tanstack/react-router";
import { useEffect, useLayoutEffect, useRef, useState } from "react";

import { takesReading } from "../wire/may.ts";
import { isLong } from "../wire/paged.ts";
import { useWaiting } from "../wire/queries.ts";
import { isLost, useConnectionState, useEvent, useMay, useWire } from "../wire/use-wire.ts";
import { Beyond } from "../ui/beyond.tsx";
import { ofTenants, useEverywhere } from "../ui/every-tenant.ts";
import { isTyping } from "../ui/list-keys.ts";
import { useLanguage, useWords } from "../words/use-words.ts";
import { dropList, keepList, type Listed, LOOK, type PageList } from "./first-look.ts";
import { useLater } from "./later.ts";
import { Me } from "./me.tsx";

const dialogs = async () => ({ ...(await import("./finder.tsx")), ...(await import("./key-list.tsx")) });

/** The pages beside what stands in them. */
export function Frame() {
  const words = useWords();
  const { connection } = useWire();
  const state = useConnectionState(connection);
  const mayRead = useMay("viewer", "operator.read");
  const [finding, setFinding] = useState(false);
  const [keys, setKeys] = useState(false);
  const opens = useLater(dialogs);
  useFreshness();
  useEffect(() => {
    const heard = (event: KeyboardEvent): void => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setFinding(true);
      } else if (event.key === "?" && !isTyping(event)) {
        setKeys(true);
      }
    };
    document.addEventListener("keydown", heard);
    return () => document.removeEventListener("keydown", heard);
  }, []);
  const isBeyond = useLocation({ select: ({ pathname }) => takesReading(pathname) }) && !mayRead;
  const main = useRef<HTMLElement>(null);
  useLayoutEffect(dropList, []);
  return (
    <div className={LOOK.frame}>
      <a
        href="#main"
        className="sr-only focus:not-sr-only"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        {words.frame.skip}
      </a>
      <Pages onFind={() => setFinding(true)} onKeys={() => setKeys(true)} />
      <main id="main" ref={main} tabIndex={-1} className="min-w-0 outline-none">
        {isLost(state) && (
          <p role="status" className="sticky top-0 z-5 bg-ask-bg px-6 py-1 font-medium text-ask">
            {words.frame.lost}
          </p>
        )}
        {isBeyond ? <Beyond scope="operator.read" /> : <Outlet />}
      </main>
      {opens !== undefined && (
        <>
          <opens.Finder open={finding} onClose={() => setFinding(false)} />
          <opens.KeyList open={keys} onClose={() => setKeys(false)} />
        </>
      )}
    </div>
  );
}

function Pages({ onFind, onKeys }: { onFind: () => void; onKeys: () => void }) {
  const words = useWords();
  const language = useLanguage();
  const mayApprove = useMay("operator", "operator.approvals");
  const mayRead = useMay("viewer", "operator.read");
  const everywhere = useEverywhere();
  const pages: readonly Listed[] = [
    ...(mayRead
      ? [
          { to: "/", name: words.pages.overview, phone: true },
          { to: "/chat", name: words.pages.chat, phone: true },
        ]
      : []),
    ...(mayApprove ? [{ to: "/approvals", name: words.pages.approvals, phone: true }] : []),
    ...(mayRead
      ? [
          { to: "/hooks", name: words.pages.hooks },
          { to: "/turns", name: words.pages.turns, phone: true },
          { to: "/executions", name: words.pages.executions },
          { to: "/chain", name: words.pages.chain },
          { to: "/health", name: words.pages.health },
        ]
      : []),
    { to: "/settings", name: words.pages.settings },
  ];
  // The next time it is there before the pages are.
  const list = JSON.stringify({ language, label: words.frame.pages, pages } satisfies PageList);
  useEffect(() => keepList(list), [list]);
  return (
    <nav aria-label={words.frame.pages} className={LOOK.list}>
      <p className={LOOK.name}>Pintle</p>
      {pages.map((page) => (
        // The number beside it leads to its list.
        <Link key={page.to} to={page.to} search={(page.to === "/approvals" ? ofTenants(everywhere) : {}) as never} activeOptions={{ exact: page.to === "/" }} className={LOOK.link(page)} activeProps={{ className: LOOK.chosen }}>
          {page.name}
          {page.to === "/approvals" && <WaitingCount />}
        </Link>
      ))}
      <Me more={pages.filter(({ phone }) => phone !== true)} onFind={onFind} onKeys={onKeys} />
    </nav>
  );
}

function WaitingCount() {
  const count = useWaiting(useEverywhere());
  const words = useWords();
  return count === 0 ? null : (
    <span className="rounded-full bg-ask-bg px-1.5 text-small leading-5 font-semibold text-ask">
      {count}
      <span className="sr-only"> {words.approvals.waitingWord}</span>
    </span>
  );
}

/** What the server says is fetched anew once it is different from what is shown. */
function useFreshness(): void {
  const queries = useQueryClient();
  const router = useRouter();
  const all = (): void => {
    void queries.invalidateQueries({ predicate: (query) => !isLong(query) });
    void router.invalidate();
  };
  const only = (what: string) => (): void => void queries.invalidateQueries({ queryKey: [what] });
  useEvent("reconnected", all);
  useEvent("gap", all);
  useEvent("approvals.created", () => {
    only("approvals")();
    // A conversation whose first turn waits is in the list by now, with its name.
    only("sessions")();
  });
  useEvent("approvals.decided", only("approvals"));
  useEvent("approvals.expired", only("approvals"));
  useEvent("hooks.changed", only("hooks"));
  useEvent("hooks.breaker", only("hooks"));
}
