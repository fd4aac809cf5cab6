import { useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useRouter } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";

import { isLong } from "../wire/paged.ts";
import { useWaiting } from "../wire/queries.ts";
import { isLost, useConnectionState, useEvent, useMay, useWire } from "../wire/use-wire.ts";
import { clsx } from "../ui/clsx.ts";
import { isTyping } from "../ui/list-keys.ts";
import { useWords } from "../words/use-words.ts";
import { useLater } from "./later.ts";
import { Me } from "./me.tsx";

const dialogs = async () => ({ ...(await import("./finder.tsx")), ...(await import("./key-list.tsx")) });

/** The pages beside what stands in them. */
export function Frame() {
  const words = useWords();
  const { connection } = useWire();
  const state = useConnectionState(connection);
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
  const main = useRef<HTMLElement>(null);
  return (
    <div className="grid min-h-dvh grid-cols-[184px_minmax(0,1fr)] max-sm:block">
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
        <Outlet />
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

/** A page in the list of pages. On a telephone there is room for some; the others stand behind *More*. */
interface Listed {
  readonly to: string;
  readonly name: string;
  readonly phone?: boolean;
}

function Pages({ onFind, onKeys }: { onFind: () => void; onKeys: () => void }) {
  const words = useWords();
  const mayApprove = useMay("operator");
  const pages: readonly Listed[] = [
    { to: "/", name: words.pages.overview, phone: true },
    { to: "/chat", name: words.pages.chat, phone: true },
    ...(mayApprove ? [{ to: "/approvals", name: words.pages.approvals, phone: true }] : []),
    { to: "/hooks", name: words.pages.hooks },
    { to: "/turns", name: words.pages.turns, phone: true },
    { to: "/executions", name: words.pages.executions },
    { to: "/chain", name: words.pages.chain },
    { to: "/health", name: words.pages.health },
    { to: "/settings", name: words.pages.settings },
  ];
  return (
    <nav
      aria-label={words.frame.pages}
      className="sticky top-0 flex h-dvh flex-col gap-0.5 border-r border-line px-2 py-3 max-sm:fixed max-sm:inset-x-0 max-sm:top-auto max-sm:bottom-0 max-sm:z-5 max-sm:h-auto max-sm:flex-row max-sm:border-t max-sm:border-r-0 max-sm:bg-surface max-sm:p-1"
    >
      <p className="px-2 pt-1 pb-3 text-large font-semibold max-sm:hidden">Pintle</p>
      {pages.map(({ to, name, phone }) => (
        <Link
          key={to}
          to={to}
          activeOptions={{ exact: to === "/" }}
          className={clsx(
            phone !== true && "max-sm:hidden",
            "flex min-w-0 items-center justify-between rounded px-2 py-1 text-muted hover:bg-raised max-sm:min-h-11 max-sm:flex-auto max-sm:justify-center max-sm:gap-0.5 max-sm:px-1 max-sm:text-[11px] max-sm:whitespace-nowrap",
          )}
          activeProps={{ className: "bg-tint! text-accent! font-semibold" }}
        >
          {name}
          {to === "/approvals" && <WaitingCount />}
        </Link>
      ))}
      <Me more={pages.filter(({ phone }) => phone !== true)} onFind={onFind} onKeys={onKeys} />
    </nav>
  );
}

function WaitingCount() {
  const count = useWaiting();
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
  useEvent("approvals.created", only("approvals"));
  useEvent("approvals.decided", only("approvals"));
  useEvent("approvals.expired", only("approvals"));
  useEvent("hooks.changed", only("hooks"));
  useEvent("hooks.breaker", only("hooks"));
}
