import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useId, useState } from "react";

import { Dialog } from "../ui/dialog.tsx";
import { clsx } from "../ui/clsx.ts";
import { Input } from "../ui/field.tsx";
import { useAgents, useHooks, useSessions } from "../wire/queries.ts";
import { useMay } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";

interface Found {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly to: string;
}

/** Most of what is found that is shown. */
const SHOWN = 12;

/** Finds pages, hooks, conversations and agents by their names. */
export function Finder({ open, onClose }: { open: boolean; onClose: () => void }) {
  const words = useWords();
  return (
    <Dialog open={open} onClose={onClose} title={words.frame.find}>
      <Search onClose={onClose} />
    </Dialog>
  );
}

function useEverything(): Found[] {
  const words = useWords();
  const mayCreate = useMay("admin");
  const owner = useMay("owner");
  const hooks = useHooks().data ?? [];
  const sessions = useSessions().data ?? [];
  const agents = useAgents().data ?? [];
  const page = (to: string, name: string): Found => ({ id: to, name, kind: words.find.page, to });
  return [
    page("/", words.pages.overview),
    page("/chat", words.pages.chat),
    page("/approvals", words.pages.approvals),
    page("/hooks", words.pages.hooks),
    page("/hooks/changes", words.rules.changes.title),
    page("/turns", words.pages.turns),
    page("/executions", words.pages.executions),
    page("/chain", words.pages.chain),
    page("/health", words.pages.health),
    page("/settings", words.pages.settings),
    ...(["members", "keys"] as const).filter(() => mayCreate).map((part) => page(`/settings/${part}`, words.settings.parts[part])),
    ...(["tenants", "webhooks"] as const).filter(() => owner).map((part) => page(`/settings/${part}`, words.settings.parts[part])),
    ...(mayCreate ? [{ id: "new-hook", name: words.hooks.create, kind: words.find.action, to: "/hooks/new" }, { id: "import", name: `${words.rules.imports.title}: ${words.pages.hooks}`, kind: words.find.action, to: "/hooks/import" }] : []),
    ...hooks.map((hook) => ({ id: hook.id, name: hook.name || hook.id, kind: words.find.hook, to: `/hooks/${hook.id}` })),
    ...sessions.map((one) => ({ id: one.key, name: one.label || one.key, kind: words.find.session, to: `/chat/${encodeURIComponent(one.key)}` })),
    ...agents.map((agent) => ({ id: `agent ${agent.id}`, name: agent.id, kind: words.find.agent, to: `/chain?agent=${encodeURIComponent(agent.id)}` })),
  ];
}

function Search({ onClose }: { onClose: () => void }) {
  const words = useWords();
  const everything = useEverything();
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const wanted = text.trim().toLowerCase();
  const found = everything.filter(({ name, kind }) => `${name} ${kind}`.toLowerCase().includes(wanted)).slice(0, SHOWN);
  const go = (one: Found | undefined): void => {
    if (one !== undefined) {
      onClose();
      void navigate({ to: one.to });
    }
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setAt((current) => Math.max(0, Math.min(found.length - 1, current + (event.key === "ArrowDown" ? 1 : -1))));
    } else if (event.key === "Enter") {
      event.preventDefault();
      go(found[at]);
    }
  };
  return (
    <div className="mt-2">
      <Input
        autoFocus
        role="combobox"
        aria-label={words.find.label}
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={found[at] === undefined ? undefined : `${list}-${at}`}
        placeholder={words.find.label}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={keys}
      />
      <div id={list} role="listbox" aria-label={words.frame.find} className="mt-2">
        {found.map((one, index) => (
          <div
            key={one.id}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === at}
            className={clsx("flex cursor-pointer justify-between gap-2 rounded px-2 py-1 max-sm:min-h-11", index === at && "bg-tint")}
            onClick={() => go(one)}
          >
            <span className="truncate">{one.name}</span>
            <span className="shrink-0 text-small text-muted">{one.kind}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="px-2 text-muted">{words.find.nothing}</p>}
    </div>
  );
}
