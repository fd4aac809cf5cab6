import { useLocation } from "@tanstack/react-router";
import { useState } from "react";

import { Button } from "../ui/button.tsx";
import { Name } from "../ui/name.tsx";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { isChosen } from "./first-look.ts";
import { useLater } from "./later.ts";
import type { MenuAbout } from "./me-menu.tsx";

const menu = () => import("./me-menu.tsx");

const LOOK = "w-full min-w-0 rounded px-2 py-1 text-left text-small text-muted hover:bg-raised max-sm:min-h-11 max-sm:px-1 max-sm:text-center max-sm:text-[11px]";

/** Who one is, and what concerns oneself. On a telephone also the pages that have no room beside it. */
export function Me(about: MenuAbout) {
  const words = useWords();
  const { me } = useWire();
  const [wanted, setWanted] = useState(false);
  const who = (
    <>
      <span className="block truncate font-semibold text-text max-sm:hidden"><Name of={me.user_id} /></span>
      <span className="hidden truncate max-sm:block">{words.frame.more}</span>
      <span className="block wrap-anywhere max-sm:truncate" data-testid="role">
        {words.roles[me.role]}
        <span className="max-sm:hidden">
          {" · "}
          <Name of={me.tenant_name || me.tenant_slug} />
          {" · "}
          {me.edition}
        </span>
      </span>
    </>
  );
  const opens = useLater(menu);
  const path = useLocation({ select: ({ pathname }) => pathname });
  // On a telephone the pages behind it are seen nowhere else.
  const look = about.more.some(({ to }) => isChosen(to, path)) ? `${LOOK} max-sm:bg-tint max-sm:font-semibold max-sm:text-accent` : LOOK;
  return (
    <div className="mt-auto max-sm:mt-0 max-sm:flex max-sm:max-w-16 max-sm:flex-auto">
      <Button look="quiet" className="w-full justify-start! px-2! text-small no-underline! max-sm:hidden" onClick={about.onFind}>
        {words.frame.find} <kbd className="ml-auto text-muted">{navigator.platform.startsWith("Mac") ? "⌘K" : "Ctrl-K"}</kbd>
      </Button>
      {opens === undefined ? (
        // Whoever is faster than this gets it open.
        <button type="button" aria-haspopup="menu" aria-expanded="false" className={look} onClick={() => setWanted(true)}>
          {who}
        </button>
      ) : (
        <opens.MeMenu {...about} defaultOpen={wanted} className={look}>
          {who}
        </opens.MeMenu>
      )}
    </div>
  );
}
