import { useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useRouter } from "@tanstack/react-router";
import * as Menu from "@radix-ui/react-dropdown-menu";
import { useContext, useEffect, useRef, useState } from "react";

import { useWaiting } from "../wire/queries.ts";
import { isLost, useConnectionState, useEvent, useMay, useWire } from "../wire/use-wire.ts";
import { Button } from "../ui/button.tsx";
import { isTyping } from "../ui/list-keys.ts";
import { useLanguage, useWords } from "../words/use-words.ts";
import { Finder } from "./finder.tsx";
import { KeyList } from "./key-list.tsx";
import { type Preferences, PreferencesContext } from "./preferences.ts";

/** The pages beside what stands in them. */
export function Frame() {
  const words = useWords();
  const { connection } = useWire();
  const state = useConnectionState(connection);
  const [finding, setFinding] = useState(false);
  const [keys, setKeys] = useState(false);
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
      <Finder open={finding} onClose={() => setFinding(false)} />
      <KeyList open={keys} onClose={() => setKeys(false)} />
    </div>
  );
}

function Pages({ onFind, onKeys }: { onFind: () => void; onKeys: () => void }) {
  const words = useWords();
  const mayApprove = useMay("operator");
  const pages = [
    { to: "/chat", name: words.pages.chat },
    ...(mayApprove ? [{ to: "/approvals", name: words.pages.approvals }] : []),
    { to: "/hooks", name: words.pages.hooks },
    { to: "/executions", name: words.pages.executions },
    { to: "/chain", name: words.pages.chain },
  ];
  return (
    <nav
      aria-label={words.frame.pages}
      className="sticky top-0 flex h-dvh flex-col gap-0.5 border-r border-line px-2 py-3 max-sm:fixed max-sm:inset-x-0 max-sm:top-auto max-sm:bottom-0 max-sm:z-5 max-sm:h-auto max-sm:flex-row max-sm:border-t max-sm:border-r-0 max-sm:bg-surface max-sm:p-1"
    >
      <p className="px-2 pt-1 pb-3 text-large font-semibold max-sm:hidden">Pintle</p>
      {pages.map(({ to, name }) => (
        <Link
          key={to}
          to={to}
          className="flex min-w-0 items-center justify-between rounded px-2 py-1 text-muted hover:bg-raised max-sm:min-h-11 max-sm:flex-auto max-sm:justify-center max-sm:gap-0.5 max-sm:px-1 max-sm:text-[11px] max-sm:whitespace-nowrap"
          activeProps={{ className: "bg-tint! text-accent! font-semibold" }}
        >
          {name}
          {to === "/approvals" && <WaitingCount />}
        </Link>
      ))}
      <Me onFind={onFind} onKeys={onKeys} />
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

const ITEM = "flex cursor-pointer items-center rounded px-2 py-1 data-highlighted:bg-tint data-highlighted:outline-none max-sm:min-h-11";

function Me({ onFind, onKeys }: { onFind: () => void; onKeys: () => void }) {
  const preferences = useContext(PreferencesContext);
  const words = useWords();
  const language = useLanguage();
  const { me, signOut } = useWire();
  return (
    <div className="mt-auto max-sm:mt-0 max-sm:flex max-sm:max-w-16 max-sm:flex-auto">
      <Button look="quiet" className="w-full justify-start! px-2! text-small no-underline! max-sm:hidden" onClick={onFind}>
        {words.frame.find} <kbd className="ml-auto text-muted">{navigator.platform.startsWith("Mac") ? "⌘K" : "Ctrl-K"}</kbd>
      </Button>
      <Menu.Root modal={false}>
        <Menu.Trigger className="w-full min-w-0 rounded px-2 py-1 text-left text-small text-muted hover:bg-raised max-sm:min-h-11 max-sm:px-1 max-sm:text-center max-sm:text-[11px]">
          <span className="block truncate font-semibold text-text max-sm:font-normal max-sm:text-muted">{me.user_id}</span>
          <span className="block truncate max-sm:hidden">
            {words.roles[me.role]} · {me.tenant_name ?? me.tenant_slug ?? me.tenant_id} · {me.edition}
          </span>
        </Menu.Trigger>
        <Menu.Portal>
          <Menu.Content side="top" align="start" className="z-20 min-w-45 rounded-md border border-line bg-surface p-1" aria-label={words.frame.me}>
            <Menu.Label className="px-2 py-1 text-small text-muted">
              {words.roles[me.role]} · {me.tenant_name ?? me.tenant_slug ?? me.tenant_id} · {me.edition} · {me.server.version}
            </Menu.Label>
            <Menu.RadioGroup value={preferences?.scheme ?? "auto"} onValueChange={(to) => preferences?.setScheme(to as Preferences["scheme"])}>
              {(["auto", "light", "dark"] as const).map((scheme) => (
                <Menu.RadioItem key={scheme} value={scheme} className={ITEM}>
                  <span className="w-5">
                    <Menu.ItemIndicator>✓</Menu.ItemIndicator>
                  </span>
                  {words.schemes[scheme]}
                </Menu.RadioItem>
              ))}
            </Menu.RadioGroup>
            <Menu.Separator className="my-1 h-px bg-line" />
            <Menu.RadioGroup value={language} onValueChange={(to) => preferences?.setLanguage(to as Preferences["language"])}>
              {(["en", "zh-CN"] as const).map((one) => (
                <Menu.RadioItem key={one} value={one} lang={one} className={ITEM}>
                  <span className="w-5">
                    <Menu.ItemIndicator>✓</Menu.ItemIndicator>
                  </span>
                  {words.languages[one]}
                </Menu.RadioItem>
              ))}
            </Menu.RadioGroup>
            <Menu.Separator className="my-1 h-px bg-line" />
            <Menu.Item className={ITEM} onSelect={onFind}>
              {words.frame.find}
            </Menu.Item>
            <Menu.Item className={ITEM} onSelect={onKeys}>
              {words.keys.title}
            </Menu.Item>
            <Menu.Item className={ITEM} onSelect={signOut}>
              {words.frame.signOut}
            </Menu.Item>
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
    </div>
  );
}

/** What the server says is fetched anew once it is different from what is shown. */
function useFreshness(): void {
  const queries = useQueryClient();
  const router = useRouter();
  const all = (): void => {
    void queries.invalidateQueries();
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
