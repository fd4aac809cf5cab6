import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";

import { ChooseAgent, ChooseHook, ChooseSession, ChooseTenants } from "../ui/choose.tsx";
import { EVERY_TENANT, useEverywhere } from "../ui/every-tenant.ts";
import { FILTER, Select } from "../ui/field.tsx";
import { Filters } from "../ui/filters.tsx";
import { useListKeys } from "../ui/list-keys.ts";
import { Name } from "../ui/name.tsx";
import { Empty } from "../ui/page.tsx";
import { PagedList } from "../ui/paged-list.tsx";
import { SaidText } from "../ui/said-text.tsx";
import { Sign } from "../ui/sign.tsx";
import { beginOf, isSpan, SpanSelect } from "../ui/span.tsx";
import { wholeMs } from "../ui/took.ts";
import { When } from "../ui/when.tsx";
import { usePaged } from "../wire/paged.ts";
import { useTenantNames } from "../wire/queries.ts";
import { DECISIONS, EVENTS, FAULTS, type Execution, type Params, type Payload } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { useLive } from "./use-live.ts";

/** How many rows are fetched at first: more than one sees at once; and then: as many as the server gives. */
const FIRST_PAGE = 50;
const NEXT_PAGE = 200;
const HEIGHT = { wide: 33, narrow: 93 };

type Query = Params<"hooks.history">;

/** The filters that stand in the address. */
function useQueryOfAddress(hookId: string | undefined): { query: Query; span: string; everywhere: boolean; of: string | undefined } {
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const { me } = useWire();
  const everywhere = useEverywhere();
  // A conversation is one tenant's.
  const of = everywhere && search["session"] !== undefined ? search["of"] : undefined;
  const asked = JSON.stringify({
    // An owner sees every tenant's: those of the own one, unless they ask for all, or for a hook of whichever.
    tenantId: me.is_owner && !everywhere && hookId === undefined && search["hook"] === undefined ? me.tenant_id : of,
    hookId: hookId ?? search["hook"],
    event: EVENTS.find((one) => one === search["event"]),
    decision: DECISIONS.find((one) => one === search["decision"]),
    fault: FAULTS.find((one) => one === search["fault"]),
    sessionId: search["session"],
    agentId: search["agent"],
  });
  return { everywhere, of, span: search["span"] ?? "", query: useMemo(() => JSON.parse(asked) as Query, [asked]) };
}

const rowsOf = ({ executions }: Payload<"hooks.history">): readonly Execution[] => executions;
const idOf = ({ id }: Execution): string => id;

/** What hooks answered, newest first. */
export function ExecutionList({ hookId, to, params }: { hookId?: string; to: string; params?: Record<string, string> }) {
  const words = useWords().executions;
  const { connection } = useWire();
  const mayTalk = useMay("operator", "operator.write");
  const { query, span, everywhere, of } = useQueryOfAddress(hookId);
  useListKeys();
  const tenants = useTenantNames();
  // A cursor belongs to its question, so the moment at which a span began stays the same while pages come.
  const since = useMemo(() => (isSpan(span) ? beginOf(span) : undefined), [span]);
  const list = usePaged(
    ["executions", query, since ?? null],
    (cursor) => connection.request("hooks.history", { ...query, limit: cursor === undefined ? FIRST_PAGE : NEXT_PAGE, ...(since === undefined ? {} : { since }), ...(cursor === undefined ? {} : { cursor }) }),
    rowsOf,
  );
  const newer = useLive(query, list.rows);
  return (
    <div>
      <ExecutionFilters hookId={hookId} gone={list.rows[0]?.hook_name} query={query} span={span} everywhere={everywhere} of={of} to={to} params={params} />
      <PagedList label={words.title} list={list} newer={newer} height={HEIGHT} idOf={idOf} empty={<Empty title={words.empty}>{mayTalk ? words.emptyAbout : words.emptyOnly}</Empty>}>
        {(row) => <Row row={row} showHook={hookId === undefined} tenant={everywhere ? tenants.get(row.tenant_id) : undefined} />}
      </PagedList>
    </div>
  );
}

interface Filtered {
  readonly hookId: string | undefined;
  readonly gone: string | undefined;
  readonly query: Query;
  readonly span: string;
  readonly everywhere: boolean;
  /** Whose the conversation is that is chosen, where those of every tenant are offered. */
  readonly of: string | undefined;
  readonly to: string;
  readonly params: Record<string, string> | undefined;
}

/** What is of one tenant: another choice of tenants has others. */
const NO_OWN = { session: undefined, of: undefined, agent: undefined };

function ExecutionFilters({ hookId, gone, query, span, everywhere, of, to, params }: Filtered) {
  const words = useWords();
  const navigate = useNavigate();
  const put = (what: Record<string, string | undefined>): void => {
    void navigate({ to, params: params ?? {}, search: (before: Record<string, unknown>) => ({ ...before, ...what }), replace: true } as never);
  };
  const set = (name: string, value: string): void => put({ ...(name === "tenant" ? NO_OWN : {}), [name]: value === "" ? undefined : value });
  return (
    <Filters isChosen={span !== "" || everywhere || [query.hookId === hookId ? undefined : query.hookId, query.event, query.decision, query.fault, query.agentId, query.sessionId].some((one) => one !== undefined)}>
      {hookId === undefined && <ChooseHook className={FILTER} known={gone} value={query.hookId ?? ""} choose={(to) => set("hook", to)} />}
      {hookId === undefined && (
        <Select className={FILTER} aria-label={words.hooks.fields.event} value={query.event ?? ""} onChange={(event) => set("event", event.target.value)}>
          <option value="">{words.hooks.anyEvent}</option>
          {EVENTS.map((event) => (
            <option key={event}>{event}</option>
          ))}
        </Select>
      )}
      <Select className={FILTER} aria-label={words.executions.decision} value={query.decision ?? ""} onChange={(event) => set("decision", event.target.value)}>
        <option value="">{words.executions.anyDecision}</option>
        {DECISIONS.map((decision) => (
          <option key={decision} value={decision}>
            {words.decisions[decision]}
          </option>
        ))}
      </Select>
      <Select className={FILTER} aria-label={words.turns.fault} value={query.fault ?? ""} onChange={(event) => set("fault", event.target.value)}>
        <option value="">{words.executions.anyFault}</option>
        {FAULTS.map((fault) => (
          <option key={fault} value={fault}>
            {words.turns.faults[fault]}
          </option>
        ))}
      </Select>
      <ChooseAgent by="uuid" className={FILTER} value={query.agentId ?? ""} choose={(to) => set("agent", to)} />
      <ChooseSession className={FILTER} value={query.sessionId ?? ""} tenant={of} choose={(key, tenant) => put({ session: key === "" ? undefined : key, of: tenant })} />
      {hookId === undefined && <ChooseTenants className={FILTER} value={everywhere ? EVERY_TENANT : ""} choose={(to) => set("tenant", to)} />}
      <SpanSelect className={FILTER} span={span} any={words.executions.anyTime} choose={(to) => set("span", to)} />
    </Filters>
  );
}

function Row({ row, showHook, tenant }: { row: Execution; showHook: boolean; tenant: string | undefined }) {
  const words = useWords();
  return (
    <Link
      data-row
      to="/executions/$id"
      params={{ id: row.id }}
      className="grid grid-cols-[88px_96px_minmax(0,1fr)_minmax(0,2fr)_72px] items-center gap-2 px-3 py-1.5 -outline-offset-2! hover:bg-tint max-sm:grid-cols-[96px_minmax(0,1fr)] max-sm:gap-y-0.5"
    >
      <span className="text-muted max-sm:order-4">
        <When at={row.created_at} />
      </span>
      <span className="max-sm:order-1">
        <Sign kind={row.decision} word={words.decisions[row.decision]} />
      </span>
      <span className="truncate max-sm:order-2">
        {showHook && <span className="font-medium"><Name of={row.hook_name || (row.hook_id ?? "")} /> </span>}
        {row.tool_name !== null && <code><Name of={row.tool_name} /></code>}
        {!showHook && row.tool_name === null && <code>{row.event}</code>}
        {tenant !== undefined && <span className="text-small text-muted"> · {tenant}</span>}
      </span>
      <span className="truncate text-muted max-sm:order-3 max-sm:col-span-2">
        <SaidText text={row.reason ?? row.error ?? ""} />
      </span>
      <span className="text-right text-muted max-sm:order-5">{wholeMs(row.duration_ms)}</span>
    </Link>
  );
}
