import { useQuery } from "@tanstack/react-query";
import { Link, useSearch, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { type Counted, counted, labelsOf, ofTenant } from "../hooks/state.ts";
import { wordOf } from "../hooks/changed.ts";
import { ChooseTenants } from "../ui/choose.tsx";
import { EVERY_TENANT, ofTenants, useEverywhere } from "../ui/every-tenant.ts";
import { GUARD_SIGNS, GuardSign, useLack } from "../ui/guard-sign.tsx";
import { useHeld } from "../ui/held.ts";
import { HookLink } from "../ui/hook-link.tsx";
import { useListKeys } from "../ui/list-keys.ts";
import { useLoading } from "../ui/loading.ts";
import { Name } from "../ui/name.tsx";
import { Newer } from "../ui/newer.tsx";
import { Card, Page, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { Sign, type SignKind } from "../ui/sign.tsx";
import { beginOf, isSpan, type Span, SpanSelect } from "../ui/span.tsx";
import { When } from "../ui/when.tsx";
import { took } from "../ui/took.ts";
import type { GuardLine, GuardsSummary, HookChange, HookCounts, Payload, TurnLine } from "../wire/types.ts";
import { useConfigured, useHooks, useIsGone, useTenantNames } from "../wire/queries.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useLanguage, useWords } from "../words/use-words.ts";
import { BlockedRow } from "./blocked-row.tsx";
import { DecisionChart } from "./chart.tsx";
import { turnsOf } from "./leads.ts";
import { type CountedOutcome, countText, countTurns, type TurnCounts } from "./turn-counts.ts";

type Overview = Payload<"overview.get">;

/** How often the numbers are asked for anew, in milliseconds: they change in their places. */
const LOOK_EVERY_MS = 5_000;
/** How often turns are counted anew, in milliseconds: that is more to read. */
const COUNT_EVERY_MS = 10_000;
/** How many blocked turns are shown. */
const BLOCKED = 5;
/** How many changes. */
const CHANGES = 5;

/** What somebody has to know who opens the console. */
export function OverviewPage() {
  const words = useWords();
  const { connection } = useWire();
  const navigate = useNavigate();
  const asked = (useSearch({ strict: false }) as Record<string, string | undefined>)["span"];
  const span = isSpan(asked) ? asked : "day";
  const everywhere = useEverywhere();
  const whose = everywhere ? { allTenants: true } : {};
  const found = useQuery({
    queryKey: ["overview", span, everywhere],
    queryFn: () => connection.request("overview.get", { since: beginOf(span), ...whose }),
    refetchInterval: LOOK_EVERY_MS,
    // The numbers of another time may stand there until the new ones come, those of other tenants not.
    placeholderData: (before, of) => (of?.queryKey[2] === everywhere ? before : undefined),
  });
  const turns = useQuery({
    queryKey: ["turns", "counted", span, everywhere],
    queryFn: () => countTurns(connection, { since: beginOf(span), ...whose }),
    refetchInterval: COUNT_EVERY_MS,
  });
  const blocked = useQuery({
    queryKey: ["turns", "blocked", BLOCKED, everywhere],
    queryFn: async () => (await connection.request("turns.list", { decision: "blocked", limit: BLOCKED, ...whose })).turns,
    refetchInterval: LOOK_EVERY_MS,
  });
  useListKeys();
  const loading = useLoading(words.overview.loading);
  const overview = found.data;
  const many = useCounted(everywhere);
  const set = (name: string, value: string): void => void navigate({ to: "/", search: (before: Record<string, unknown>) => ({ ...before, [name]: value === "" ? undefined : value }) as never, replace: true });
  return (
    <Page>
      <PageHead
        title={words.overview.title}
        answer={overview === undefined || many === undefined ? loading : words.overview.answer(bad(overview.guards), many.on, many.all, overview.approvalsWaiting ?? 0)}
        actions={
          <>
            <ChooseTenants value={everywhere ? EVERY_TENANT : ""} choose={(to) => set("tenant", to)} />
            <SpanSelect span={span} choose={(to) => set("span", to)} />
          </>
        }
      />
      {found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {overview !== undefined && <Parts key={String(everywhere)} overview={overview} turns={turns.data} blocked={blocked.data ?? []} span={span} />}
    </Page>
  );
}

/** The hooks that are here or everywhere, as the page of hooks counts them. */
function useCounted(everywhere: boolean): Counted | undefined {
  const { me } = useWire();
  const hooks = useHooks().data;
  const configured = useConfigured().data;
  return hooks === undefined || configured === undefined ? undefined : counted(everywhere ? hooks : ofTenant(hooks, me.tenant_id), configured);
}

const bad = ({ counts }: GuardsSummary): number => counts.unproven + counts.broken + counts.tripped;

function Parts({ overview, turns, blocked, span }: { overview: Overview; turns: TurnCounts | undefined; blocked: readonly TurnLine[]; span: Span }) {
  const words = useWords();
  const stopped = useHeld(blocked, turnId, { keeps: true });
  const everywhere = useEverywhere();
  const tenants = useTenantNames();
  const seesAll = useMay("admin");
  return (
    <div className="flex flex-col gap-4">
      <Tiles overview={overview} turns={turns} span={span} />
      {!seesAll && <p className="-mt-2 text-small text-muted">{words.overview.ownOnly}</p>}
      <NotArmed guards={overview.guards} />
      <Part title={seesAll ? words.overview.over : words.overview.overOwn}>
        <p className="mb-2 text-small text-muted">{words.overview.counts}</p>
        <DecisionChart decisions={overview.decisions} counts={turns} span={span} />
      </Part>
      {stopped.shown.length > 0 && (
        <section>
          <Head title={words.overview.lastBlocked} more={<Link to="/turns" search={{ decision: "blocked", ...ofTenants(everywhere) } as never} className="text-accent underline">{words.overview.all}</Link>} />
          <Newer list={stopped} />
          <Card className="overflow-hidden">
            <ul>
              {stopped.shown.map((turn) => (
                <li key={turn.turnId} className="border-b border-line last:border-b-0">
                  <BlockedRow turn={turn} tenant={everywhere ? tenants.get(turn.tenantId ?? "") : undefined} />
                </li>
              ))}
            </ul>
          </Card>
        </section>
      )}
      <div className="grid grid-cols-2 gap-4 max-lg:grid-cols-1">
        <HookTable title={words.overview.blocking} none={seesAll ? words.overview.noBlocks : words.overview.noBlocksOwn} rows={mostBlocked(overview.blocking)} span={span} decision="blocked" value={(row) => words.hooks.share(row.blocked, row.runs)} />
        <HookTable title={words.overview.slowest} about={words.overview.slowestAbout} none={seesAll ? words.overview.noHooks : words.overview.noHooksOwn} rows={overview.slowest} span={span} value={(row) => (row.p95Ms === null ? "–" : took(row.p95Ms))} />
      </div>
      <div className="grid grid-cols-2 gap-4 max-lg:grid-cols-1">
        {/* Each tenant has a budget of its own. */}
        {!everywhere && <BudgetPart overview={overview} />}
        <Changes overview={overview} />
      </div>
    </div>
  );
}

function Head({ title, more }: { title: string; more?: ReactNode }) {
  return (
    <div className="mb-1 flex items-baseline justify-between">
      <h2 className="font-semibold">{title}</h2>
      {more}
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="min-w-0">
      <Head title={title} />
      <Card className="p-4">{children}</Card>
    </section>
  );
}

/** The numbers that come first, each with the way to its list. */
function Tiles({ overview, turns, span }: { overview: Overview; turns: TurnCounts | undefined; span: Span }) {
  const words = useWords().overview;
  const language = useLanguage();
  const { counts } = overview.guards;
  const count = (outcome: CountedOutcome): string => (turns === undefined ? "–" : countText(turns[outcome], language));
  const isNone = (outcome: CountedOutcome): boolean => (turns?.[outcome].turns ?? 0) === 0;
  const guard = (state: "tripped" | "broken" | "unproven" | "armed", to: string, search: object) => <Tile key={state} name={words.guards[state]} sign={GUARD_SIGNS[state]} count={counts[state].toLocaleString(language)} isQuiet={counts[state] === 0} to={to} search={search} />;
  return (
    <div className="grid grid-cols-[repeat(auto-fit,minmax(140px,1fr))] gap-2" data-testid="tiles">
      {guard("tripped", "/hooks", { state: "tripped" })}
      {guard("broken", "/hooks", { state: "broken" })}
      {guard("unproven", "/hooks", { state: "unproven" })}
      {guard("armed", "/hooks", { state: "armed" })}
      {overview.approvalsWaiting !== null && <Tile name={words.waiting(overview.approvalsWaiting)} sign="ask" count={overview.approvalsWaiting.toLocaleString(language)} isQuiet={overview.approvalsWaiting === 0} to="/approvals" search={{}} />}
      <Tile name={words.decided.blocked(count("blocked"))} sign="block" count={count("blocked")} isQuiet={isNone("blocked")} to="/turns" search={{ decision: "blocked", span }} />
      <Tile name={words.decided.faults(count("faulted"))} sign="error" count={count("faulted")} isQuiet={isNone("faulted")} to="/turns" search={{ decision: "faulted", span }} />
    </div>
  );
}

function Tile({ name, sign, count, isQuiet, to, search }: { name: string; sign: SignKind; count: string; isQuiet: boolean; to: string; search: object }) {
  const everywhere = useEverywhere();
  return (
    <Link to={to} search={{ ...search, ...ofTenants(everywhere) } as never} className="flex min-h-17 flex-col justify-between rounded-md border border-line bg-surface px-3 py-2 hover:bg-tint">
      <span className={`text-[24px] leading-7 font-semibold ${isQuiet ? "text-muted" : ""}`}>{count}</span>
      <span>
        <Sign kind={isQuiet ? "off" : sign} word={name} wraps />
      </span>
    </Link>
  );
}

const guardId = ({ family, hookId, name }: GuardLine): string => `${family} ${hookId ?? name}`;
const turnId = (turn: TurnLine): string => turn.turnId;
const changeId = ({ id }: HookChange): string => id;

/** Whose a hook is, by name, where those of every tenant are shown; one that holds for everybody is nobody's. */
function useTenantOf(): (guard: GuardLine) => string | undefined {
  const everywhere = useEverywhere();
  const tenants = useTenantNames();
  const hooks = useHooks().data ?? [];
  return ({ hookId }) => {
    const hook = everywhere ? hooks.find(({ id, scope }) => id === hookId && scope !== "global") : undefined;
    return hook === undefined ? undefined : tenants.get(hook.tenant_id);
  };
}

function NotArmed({ guards }: { guards: GuardsSummary }) {
  const lack = useLack();
  const words = useWords().overview;
  const tenantOf = useTenantOf();
  const list = useHeld(guards.notArmed, guardId);
  if (guards.notArmed.length === 0) {
    return null;
  }
  return (
    <section>
      <Head title={words.lookAt} />
      <Newer list={list} />
      <Card className="overflow-hidden">
        <ul>
          {list.shown.map((guard) => (
            <li key={guardId(guard)} className="grid grid-cols-[112px_minmax(0,1fr)] items-start gap-3 border-b border-line px-3 py-2 last:border-b-0 max-sm:grid-cols-1 max-sm:gap-1">
              <span>
                <GuardSign state={guard.state} />
              </span>
              <span className="min-w-0">
                <HookLink name={guard.name} id={guard.hookId} family={guard.family} />{" "}
                <span className="text-muted">
                  {lack(guard.step, guard.why) || guard.events.join(", ")}
                  {tenantOf(guard) !== undefined && ` · ${tenantOf(guard)}`}
                </span>
              </span>
            </li>
          ))}
        </ul>
      </Card>
    </section>
  );
}

/** Those that blocked anything, the one that blocked most first. */
const mostBlocked = (rows: readonly HookCounts[]): readonly HookCounts[] => rows.filter(({ blocked }) => blocked > 0).sort((one, two) => two.blocked - one.blocked);

interface Counts {
  readonly title: string;
  readonly about?: string;
  readonly none: string;
  readonly rows: readonly HookCounts[];
  readonly span: Span;
  readonly decision?: string;
  readonly value: (row: HookCounts) => string;
}

/** Hooks by what they did: beside each the way to the turns that it was in. */
function HookTable({ title, about, none, rows, span, decision, value }: Counts) {
  const words = useWords().overview;
  const everywhere = useEverywhere();
  const top = rows.slice(0, 5);
  return (
    <section className="min-w-0">
      <Head title={title} />
      {about !== undefined && <p className="mb-1 text-small text-muted">{about}</p>}
      <Card className="overflow-hidden">
        {top.length === 0 && <p className="px-3 py-2 text-muted">{none}</p>}
        <ul>
          {top.map((row) => (
            <li key={`${row.family} ${row.name}`} className="border-b border-line last:border-b-0">
              <div className="flex items-center gap-3 px-3 py-1.5 max-sm:min-h-11">
                <span className="min-w-0 flex-1 truncate font-medium"><Name of={row.name} /></span>
                <span className="text-muted">{words.runs(row.runs)}</span>
                <span className="w-20 text-right">{value(row)}</span>
                <Link to="/turns" aria-label={words.turnsWith(row.name)} search={{ ...turnsOf(row.name, span, decision), ...ofTenants(everywhere) } as never} className="text-accent underline max-sm:flex max-sm:min-h-11 max-sm:items-center">
                  {words.turns}
                </Link>
              </div>
            </li>
          ))}
        </ul>
      </Card>
    </section>
  );
}

function BudgetPart({ overview }: { overview: Overview }) {
  const { overview: words, rules } = useWords();
  const language = useLanguage();
  const { budgetTotal, used, remaining } = overview.budget;
  const share = budgetTotal === 0 ? 0 : Math.min(1, used / budgetTotal);
  return (
    <section className="min-w-0">
      <Head title={words.budget} />
      <Link to="/health" className="block rounded-md border border-line bg-surface px-3 py-2 -outline-offset-2! hover:bg-tint">
        <span className="mb-1 flex flex-wrap items-center gap-2">
          {words.spent(used.toLocaleString(language), budgetTotal.toLocaleString(language))}
          {remaining <= 0 && <Sign kind="block" word={rules.budget.spent} />}
        </span>
        <span className="block h-2 overflow-hidden rounded bg-raised">
          <span className={`block h-2 ${share > 0.8 ? "bg-block" : "bg-accent"}`} style={{ width: `${share * 100}%` }} />
        </span>
      </Link>
    </section>
  );
}

const CHANGE = "flex items-center gap-3 px-3 py-1.5 max-sm:min-h-11";

function Change({ change, tenant }: { change: HookChange; tenant: string | undefined }) {
  const all = useWords();
  const words = all.overview;
  const event = labelsOf(useHooks().data ?? []).get(change.hook_id ?? "")?.event;
  const isGone = useIsGone(change.hook_id) || change.action === "deleted";
  const holds = (
    <>
      <span className="min-w-0 flex-1 truncate">
        <span className="font-medium"><Name of={change.hook_name || (change.hook_id ?? all.rules.budget.title)} /></span>{" "}
        {event !== undefined && (
          <>
            <code className="text-small text-muted">{event}</code>{" "}
          </>
        )}
        <span className="text-muted">
          {words.did(wordOf(change, words.actions), change.actor)}
          {tenant !== undefined && ` · ${tenant}`}
        </span>
      </span>
      <span className="text-small text-muted">
        <When at={change.at} />
      </span>
    </>
  );
  // Of a budget there is nothing to open; of a hook that is gone, what is known of it.
  if (change.hook_id === null) {
    return <div className={CHANGE}>{holds}</div>;
  }
  return isGone ? (
    <Link to="/hooks/changes" search={{ hook: change.hook_id } as never} className={`${CHANGE} -outline-offset-2! hover:bg-tint`}>
      {holds}
    </Link>
  ) : (
    <Link to="/hooks/$id" params={{ id: change.hook_id }} className={`${CHANGE} -outline-offset-2! hover:bg-tint`}>
      {holds}
    </Link>
  );
}

function Changes({ overview }: { overview: Overview }) {
  const words = useWords().overview;
  const everywhere = useEverywhere();
  const tenants = useTenantNames();
  const list = useHeld(overview.changes.slice(0, CHANGES), changeId, { keeps: true });
  return (
    <section className="min-w-0">
      <Head title={words.changes} more={<Link to="/hooks/changes" search={ofTenants(everywhere) as never} className="text-accent underline">{words.all}</Link>} />
      <Newer list={list} />
      <Card className="overflow-hidden">
        {list.shown.length === 0 && <p className="px-3 py-2 text-muted">{words.noChanges}</p>}
        <ul>
          {list.shown.map((change) => (
            <li key={change.id} className="border-b border-line last:border-b-0">
              <Change change={change} tenant={everywhere ? tenants.get(change.tenant_id) : undefined} />
            </li>
          ))}
        </ul>
      </Card>
    </section>
  );
}
