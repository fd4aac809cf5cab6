import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useContext, useId, useState } from "react";

import { newKey } from "../chat/session-key.ts";
import { homeOf } from "../hooks/state.ts";
import { Dialog } from "../ui/dialog.tsx";
import { clsx } from "../ui/clsx.ts";
import { Input } from "../ui/field.tsx";
import { Name } from "../ui/name.tsx";
import { useAgents, useConfigured, useHooks, useSessions, useTenantNames } from "../wire/queries.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useLanguage, useWords } from "../words/use-words.ts";
import { PreferencesContext } from "./preferences.ts";

interface Found {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  /** Where it leads, or what it does. */
  readonly does: string | (() => void);
}

/** Most of what is found that is shown. */
const SHOWN = 12;
/** How many of the newest turns can be found. */
const TURNS = 100;
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** How well a name fits what somebody looks for: the lower, the better. Pure. */
export function misfit(name: string, wanted: string): number {
  const said = name.toLowerCase();
  if (said.startsWith(wanted)) {
    return said === wanted ? 0 : 1;
  }
  const at = said.indexOf(wanted);
  return at === -1 ? 4 : /[\s\-_./]/.test(said.charAt(at - 1)) ? 2 : 3;
}

/** Finds pages, hooks, turns, conversations, agents and actions by their names. */
export function Finder({ open, onClose }: { open: boolean; onClose: () => void }) {
  const words = useWords();
  return (
    <Dialog open={open} onClose={onClose} title={words.frame.find} about={words.find.about}>
      <Search onClose={onClose} />
    </Dialog>
  );
}

function usePages(): Found[] {
  const words = useWords();
  const approves = useMay("operator", "operator.approvals");
  const reads = useMay("viewer", "operator.read");
  const admin = useMay("admin");
  const owner = useMay("owner");
  const page = (does: string, name: string): Found => ({ id: does, name, kind: words.find.page, does });
  return [
    ...(reads ? [page("/", words.pages.overview), page("/chat", words.pages.chat)] : []),
    ...(approves ? [page("/approvals", words.pages.approvals)] : []),
    ...(reads
      ? [
          page("/hooks", words.pages.hooks),
          page("/hooks/changes", words.rules.changes.title),
          page("/turns", words.pages.turns),
          page("/executions", words.pages.executions),
          page("/chain", words.pages.chain),
          page("/health", words.pages.health),
        ]
      : []),
    page("/settings", words.pages.settings),
    ...(["members", "keys"] as const).filter(() => admin).map((part) => page(`/settings/${part}`, words.settings.parts[part])),
    ...(["tenants", "webhooks"] as const).filter(() => owner).map((part) => page(`/settings/${part}`, words.settings.parts[part])),
  ];
}

function useActions(): Found[] {
  const words = useWords();
  const preferences = useContext(PreferencesContext);
  const language = useLanguage();
  const { signOut } = useWire();
  const talks = useMay("operator", "operator.write");
  const reads = useMay("viewer", "operator.read");
  const admin = useMay("admin");
  const owner = useMay("owner");
  const [agent] = useAgents().data ?? [];
  const action = (id: string, name: string, does: Found["does"]): Found => ({ id: `action ${id}`, name, kind: words.find.action, does });
  return [
    ...(talks && agent !== undefined ? [action("talk", words.find.talk, `/chat/${encodeURIComponent(newKey(agent.id, crypto.randomUUID().slice(0, 8)))}`)] : []),
    ...(admin ? [action("new hook", words.hooks.create, "/hooks/new"), action("import", `${words.rules.imports.title}${words.colon}${words.pages.hooks}`, "/hooks/import")] : []),
    ...(reads ? [action("export", `${words.rules.imports.export}${words.colon}${words.pages.hooks}`, "/hooks")] : []),
    ...(owner ? [action("doctor", words.health.doctor.run, "/health")] : []),
    ...(["auto", "light", "dark"] as const).filter((scheme) => scheme !== preferences?.scheme).map((scheme) => action(scheme, words.schemes[scheme], () => preferences?.setScheme(scheme))),
    ...(["en", "zh-CN"] as const).filter((one) => one !== language).map((one) => action(one, words.languages[one], () => preferences?.setLanguage(one))),
    action("sign out", words.frame.signOut, signOut),
  ];
}

/** What something is, with whose it is where that is another tenant: owners find what every tenant has. */
function useKind(): (kind: string, tenant: string | undefined) => string {
  const { me } = useWire();
  const tenants = useTenantNames();
  return (kind, tenant) => (tenant === undefined || tenant === me.tenant_id ? kind : `${kind} · ${tenants.get(tenant) ?? tenant}`);
}

/** The newest turns, each by what somebody said. */
function useTurns(): Found[] {
  const words = useWords();
  const { connection, me } = useWire();
  const every = me.is_owner ? { allTenants: true } : {};
  const kind = useKind();
  const turns = useQuery({ queryKey: ["turns", "found"], queryFn: async () => (await connection.request("turns.list", { limit: TURNS, ...every })).turns }).data ?? [];
  return turns.map(({ turnId, prompt, agentId, tenantId }) => ({ id: turnId, name: prompt?.replaceAll(/\s+/g, " ") ?? words.turns.heading(agentId), kind: kind(words.find.turn, tenantId), does: `/turns/${turnId}` }));
}

/** What may have an id that is none of what is listed: it is older, or nobody looks for it by a name. */
function useById(): (id: string) => readonly Found[] {
  const { find } = useWords();
  const approves = useMay("operator", "operator.approvals");
  const of = (id: string, kind: string, page: string): Found => ({ id: `${page} ${id}`, name: id, kind, does: `${page}/${id}` });
  return (id) => [of(id, find.turn, "/turns"), of(id, find.execution, "/executions"), ...(approves ? [of(id, find.approval, "/approvals")] : [])];
}

function useEverything(): Found[] {
  const words = useWords();
  const hooks = useHooks().data ?? [];
  const kind = useKind();
  const configured = [...new Set((useConfigured().data ?? []).map(({ name }) => name))];
  const sessions = useSessions().data ?? [];
  const agents = useAgents().data ?? [];
  return [
    ...usePages(),
    ...useActions(),
    ...hooks.map((hook) => ({ id: hook.id, name: hook.name || hook.id, kind: kind(words.find.hook, homeOf(hook)), does: `/hooks/${hook.id}` })),
    ...configured.map((name) => ({ id: `configured ${name}`, name, kind: words.find.hook, does: `/hooks?q=${encodeURIComponent(name)}` })),
    ...sessions.map((one) => ({ id: one.key, name: one.label || one.key, kind: words.find.session, does: `/chat/${encodeURIComponent(one.key)}` })),
    ...useTurns(),
    ...agents.map((agent) => ({ id: `agent ${agent.id}`, name: agent.id, kind: words.find.agent, does: `/chain?agent=${encodeURIComponent(agent.id)}` })),
  ];
}

function Search({ onClose }: { onClose: () => void }) {
  const words = useWords();
  const everything = useEverything();
  const byId = useById();
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const wanted = text.trim().toLowerCase();
  const fits = everything.filter(({ id, name, kind }) => `${name} ${kind} ${id}`.toLowerCase().includes(wanted)).sort((one, other) => misfit(one.name, wanted) - misfit(other.name, wanted)).slice(0, SHOWN);
  const found: readonly Found[] = fits.length === 0 && ID.test(wanted) ? byId(wanted) : fits;
  const go = (one: Found | undefined): void => {
    if (one !== undefined) {
      onClose();
      if (typeof one.does === "string") {
        void navigate({ to: one.does });
      } else {
        one.does();
      }
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
            className={clsx("flex cursor-pointer justify-between gap-2 rounded px-2 py-1 max-sm:min-h-11", index === at && "bg-tint outline-2 -outline-offset-2 outline-accent")}
            onClick={() => go(one)}
          >
            <span className="truncate"><Name of={one.name} /></span>
            <span className="shrink-0 text-small text-muted">{one.kind}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="px-2 text-muted">{words.find.nothing}</p>}
    </div>
  );
}
