import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Fragment, useState } from "react";

import { Button, buttonClass } from "../ui/button.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { inCodes } from "../ui/exact.ts";
import { download } from "../ui/download.ts";
import { ofTenants, useEverywhere } from "../ui/every-tenant.ts";
import { FILTER, Select } from "../ui/field.tsx";
import { Filters } from "../ui/filters.tsx";
import { type Held, useHeld } from "../ui/held.ts";
import { useListKeys } from "../ui/list-keys.ts";
import { useLoading } from "../ui/loading.ts";
import { Name } from "../ui/name.tsx";
import { Newer } from "../ui/newer.tsx";
import { Card, Empty, Page, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { Search } from "../ui/search.tsx";
import { useAgents, useAgentsOf, useConfigured, useHooks, useProofs, useStanding, useTenantNames, useTenants } from "../wire/queries.ts";
import { CHECKPOINTS, type CheckpointName, type ConfiguredHook, GATES, HANDLERS, type Hook, type HookCountsAt, isHookEvent, type Tenant } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { agentNames } from "./agent-names.ts";
import { ConfiguredRow } from "./configured.tsx";
import { CELL, Did, FIRST_CELL } from "./did.tsx";
import { exported, isExported } from "./exchange.ts";
import { useLately } from "./lately.ts";
import { counted, didLately, homeOf, type HookFilter, isWanted, isWantedConfigured, type Lately, lacksOwn, ofTenant, refusesAgain, stateOf, tripsOf } from "./state.ts";
import { StateSign } from "./state-sign.tsx";
import { Starters } from "./template-choice.tsx";

const NOTHING: Lately = new Map();

// Whoever moves to another event is a row of its own there: it waits, as every new one does.
const ruleId = ({ event, id }: Hook): string => `${event} ${id}`;
const configuredId = ({ event, runs, family, name, origin }: ConfiguredHook): string => JSON.stringify([event, runs, family, name, origin]);

/** The hooks as somebody reads them: new ones, and a new order, wait. What is known from before counts as read once the server said it again. */
function useRead(rules: readonly Hook[], configured: readonly ConfiguredHook[], isFresh: boolean, question: string): { readonly rules: readonly Hook[]; readonly configured: readonly ConfiguredHook[]; readonly waits: Omit<Held<unknown>, "shown"> } {
  const [isRead, setRead] = useState(false);
  if (isFresh && !isRead) {
    setRead(true);
  }
  const how = { question: `${question} ${isRead}` };
  const one = useHeld(rules, ruleId, how);
  const two = useHeld(configured, configuredId, how);
  const show = (): void => {
    one.show();
    two.show();
  };
  return { rules: one.shown, configured: two.shown, waits: { newer: one.newer + two.newer, isMoved: one.isMoved || two.isMoved, show } };
}

export function HooksPage() {
  const { hooks: words, rules } = useWords();
  const hooks = useHooks();
  const loading = useLoading(words.loading);
  const configured = useConfigured().data ?? [];
  const standing = useStanding();
  useProofs();
  const mayChange = useMay("admin");
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  useListKeys();
  const filter: HookFilter = { text: search["q"] ?? "", event: search["event"] ?? "", handler: search["handler"] ?? "", state: search["state"] ?? "" };
  const { me } = useWire();
  const tenants = useTenants().data ?? [];
  const everywhere = useEverywhere();
  const agents = useAgents(everywhere).data ?? [];
  const did = useLately(everywhere);
  // An owner's list has every tenant's; beside the own ones those are shown that hold for everybody.
  const all = everywhere ? (hooks.data ?? []) : ofTenant(hooks.data ?? [], me.tenant_id);
  const read = useRead(all, configured, hooks.data !== undefined && !hooks.isFetching, String(everywhere));
  const shown = read.rules.filter((hook) => isWanted(hook, filter, standing.get(hook.id)?.state));
  const ofConfiguration = read.configured.filter((hook) => isWantedConfigured(hook, filter));
  const many = counted(all, configured);
  return (
    <Page>
      <PageHead
        title={words.title}
        answer={hooks.data === undefined ? loading : words.answer(many.on, many.all, many.tripped)}
        actions={
          <>
            {/* On a telephone the one that makes a new hook stays beside the title. */}
            <span className="flex flex-wrap items-center gap-2 max-sm:order-last max-sm:w-full">
              <Link to="/hooks/changes" search={ofTenants(everywhere) as never} className={buttonClass("quiet")}>
                {rules.changes.title}
              </Link>
              {shown.some(isExported) && (
                <Button look="quiet" onClick={() => download("hooks.json", exported(shown, agents))}>
                  {rules.imports.export}
                </Button>
              )}
              {mayChange && (
                <Link to="/hooks/import" className={buttonClass("quiet")}>
                  {rules.imports.title}
                </Link>
              )}
            </span>
            {mayChange && (
              <Link to="/hooks/new" className={buttonClass("primary")}>
                {words.create}
              </Link>
            )}
          </>
        }
      />
      {hooks.error !== null && <Problem error={hooks.error} retry={() => void hooks.refetch()} />}
      {hooks.data !== undefined && lacksOwn(all, configured) && (
        <Empty title={words.empty.title}>
          <p>{words.empty.about}</p>
          <Starters />
          <p>
            {words.empty.terminal} <code>{"pintle hooks add --starter"}</code>
          </p>
        </Empty>
      )}
      {all.length + configured.length > 0 && (
        <>
          <HookFilters filter={filter} families={[...new Set(configured.map(({ family }) => family))]} tenants={tenants} everywhere={everywhere} />
          <Newer list={read.waits} ordered />
          {shown.length + ofConfiguration.length === 0 ? <Empty title={words.nothing}>
              <Link to="/hooks" search={ofTenants(everywhere) as never}>
                {words.allHooks}
              </Link>
            </Empty> : <HookTable hooks={shown} configured={ofConfiguration} did={did.data ?? NOTHING} tenants={everywhere ? tenants : []} />}
        </>
      )}
    </Page>
  );
}

function HookFilters({ filter, families, tenants, everywhere }: { filter: HookFilter; families: readonly string[]; tenants: readonly Tenant[]; everywhere: boolean }) {
  const words = useWords();
  const navigate = useNavigate();
  const set = (name: string, value: string): void => {
    void navigate({ to: "/hooks", search: (before: Record<string, unknown>) => ({ ...before, [name]: value === "" ? undefined : value }), replace: true });
  };
  return (
    <Filters
      isChosen={everywhere || [filter.event, filter.handler, filter.state].some((one) => one !== "")}
      search={<Search label={words.hooks.search} className="max-w-60 max-sm:max-w-none" value={filter.text} choose={(text) => set("q", text)} />}
    >
      <Select className={FILTER} aria-label={words.hooks.fields.event} value={filter.event} onChange={(event) => set("event", event.target.value)}>
        <option value="">{words.hooks.anyEvent}</option>
        {CHECKPOINTS.map((event) => (
          <option key={event}>{event}</option>
        ))}
      </Select>
      <Select className={FILTER} aria-label={words.hooks.fields.handler} value={filter.handler} onChange={(event) => set("handler", event.target.value)}>
        <option value="">{words.hooks.anyHandler}</option>
        {HANDLERS.map((handler) => (
          <option key={handler}>{handler}</option>
        ))}
        {families.map((family) => (
          <option key={family} value={family}>
            {words.rules.families[family as keyof typeof words.rules.families] ?? family}
          </option>
        ))}
      </Select>
      <Select className={FILTER} aria-label={words.hooks.state} value={filter.state} onChange={(event) => set("state", event.target.value)}>
        <option value="">{words.hooks.anyState}</option>
        {(["on", "off", "tripped", "edition", "agents"] as const).map((state) => (
          <option key={state} value={state}>
            {state === "on" ? words.hooks.onOrNot : words.hooks.states[state]}
          </option>
        ))}
        {(["armed", "unproven", "broken"] as const).map((state) => (
          <option key={state} value={state}>
            {words.overview.guards[state]}
          </option>
        ))}
      </Select>
      {tenants.length > 1 && (
        <Select className={FILTER} aria-label={words.rules.tenant} value={everywhere ? "all" : ""} onChange={(event) => set("tenant", event.target.value)}>
          <option value="">{words.rules.thisTenant}</option>
          <option value="all">{words.rules.allTenants}</option>
        </Select>
      )}
    </Filters>
  );
}

interface Listing {
  readonly hooks: readonly Hook[];
  readonly configured: readonly ConfiguredHook[];
  readonly did: Lately;
  readonly tenants: readonly Tenant[];
}

/** All families in the order in which they run. */
function HookTable({ hooks, configured, did, tenants }: Listing) {
  const words = useWords();
  const at = (event: CheckpointName, runs: ConfiguredHook["runs"]) =>
    configured.filter((hook) => hook.event === event && hook.runs === runs).map((hook) => <ConfiguredRow key={`${hook.name} ${hook.origin}`} hook={hook} did={didLately(did, hook)} />);
  const head = "px-3 py-1 text-left text-small font-medium text-muted";
  return (
    <Card className="overflow-hidden">
      <table className="w-full table-fixed max-sm:block">
        <colgroup className="max-lg:hidden">
          <col className="w-[25%]" />
          <col className="w-[9%]" />
          <col className="w-[9%]" />
          <col className="w-[18%]" />
          <col className="w-[13%]" />
          <col className="w-[10%]" />
          <col className="w-[8%]" />
          <col className="w-[8%]" />
        </colgroup>
        <thead className="max-sm:sr-only">
          <tr>
            {[words.hooks.hook, words.hooks.fields.handler, words.hooks.fields.scope, words.hooks.matches, words.hooks.state, words.hooks.lastRun, words.hooks.blocks, words.hooks.p95].map((name, at) => (
              <th key={name} scope="col" className={head} title={at === 6 ? words.hooks.blocksAbout : at === 7 ? words.hooks.p95About : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        {CHECKPOINTS.filter((event) => [...hooks, ...configured].some((hook) => hook.event === event)).map((event) => (
          <tbody key={event} className="max-sm:block">
            <tr className="border-t border-line bg-raised max-sm:block">
              <th scope="rowgroup" colSpan={8} className="px-3 py-0.5 text-left text-small font-normal text-muted max-sm:block">
                <code>{event}</code>
                {isHookEvent(event) && ` · ${GATES.includes(event) ? words.hooks.gate : words.hooks.observer} · ${words.events[event].when}`}
              </th>
            </tr>
            {at(event, "before")}
            {hooks
              .filter((hook) => hook.event === event)
              .map((hook) => (
                <Fragment key={hook.id}>
                  <HookRow hook={hook} did={didLately(did, hook, tenants.length > 0 && hook.scope !== "global" ? hook.tenant_id : undefined)} tenant={hook.scope === "global" ? undefined : tenants.find(({ id }) => id === hook.tenant_id)} />
                </Fragment>
              ))}
            {at(event, "after")}
          </tbody>
        ))}
      </table>
    </Card>
  );
}

function HookRow({ hook, did, tenant }: { hook: Hook; did: HookCountsAt | undefined; tenant: Tenant | undefined }) {
  const words = useWords().hooks;
  const refuses = refusesAgain(hook, useHooks().data ?? []);
  const file = hook.metadata["file"];
  const agents = useAgentsOf(homeOf(hook));
  return (
    <tr className="border-t border-line hover:bg-tint max-sm:block max-sm:px-3 max-sm:py-2">
      <td className={FIRST_CELL}>
        <Link data-row to="/hooks/$id" params={{ id: hook.id }} className="font-semibold hover:underline max-sm:flex max-sm:min-h-11 max-sm:items-center">
          <Name of={hook.name || hook.id} />
        </Link>
        <span className="block text-small text-muted">
          {hook.source === "builtin" && `${words.shipped} · `}
          {typeof file === "string" && <span title={words.fromFile(file)}>{words.inFile} · </span>}
          {words.priorityOf(hook.priority)}
          {refuses !== undefined && ` · ${words.exceptionTo(refuses.name || refuses.id)}`}
        </span>
      </td>
      <td className={CELL}>{hook.handler_type}</td>
      <td className={CELL}>
        {words.scopes[hook.scope]}
        {hook.scope === "agent" && <span className="line-clamp-2 text-small text-muted"><Name of={agentNames(hook.agent_ids, agents).join(", ")} /></span>}
        {tenant !== undefined && <span className="block text-small text-muted"><Name of={tenant.name || tenant.slug} /></span>}
      </td>
      <td className={CELL}>
        {hook.matcher === "" && hook.if_expr === "" && <span className="text-muted">{words.everything}</span>}
        {hook.matcher !== "" && <code className="line-clamp-2"><Name of={hook.matcher} /></code>}
        {hook.if_expr !== "" && (
          <span className="line-clamp-2 text-small" title={hook.if_expr}>
            <span className="text-muted">{words.onlyIf}</span> <code><Name of={hook.if_expr} /></code>
          </span>
        )}
      </td>
      <td className={CELL}>
        <StateSign hook={hook} /> {stateOf(hook) === "tripped" && <Reset hook={hook} />}
      </td>
      <Did did={did} />
    </tr>
  );
}

/** Closes the circuit breaker of a hook, once somebody confirmed it: of one for everybody in the tenants that are shown. */
export function Reset({ hook }: { hook: Hook }) {
  const { hooks: words, rules } = useWords();
  const { connection, me } = useWire();
  const tenants = useTenantNames();
  const of = tripsOf(hook);
  const [only] = of;
  const queries = useQueryClient();
  const may = useMay("admin");
  const [asks, setAsks] = useState(false);
  return may ? (
    <>
      <Button look="quiet" onClick={() => setAsks(true)}>
        {words.reset}
      </Button>
      <Confirm
        open={asks}
        onClose={() => setAsks(false)}
        title={words.resetTitle(inCodes(hook.name || hook.id))}
        about={words.resetAbout[hook.on_trip]}
        action={words.reset}
        act={async () => {
          await connection.request("hooks.reset", { hookId: hook.id, ...(only === undefined || of.length > 1 ? {} : { tenantId: only }) });
          await queries.invalidateQueries({ queryKey: ["hooks"] });
        }}
      >
        {of.some((tenant) => tenant !== me.tenant_id) && <p className="mb-2">{rules.resetIn(of.map((tenant) => tenants.get(tenant) ?? tenant).join(", "))}</p>}
      </Confirm>
    </>
  ) : null;
}
