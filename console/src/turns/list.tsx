import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useId, useMemo, useState } from "react";

import { ChooseAgent, ChooseSession, ChooseTenants } from "../ui/choose.tsx";
import { EVERY_TENANT, useEverywhere } from "../ui/every-tenant.ts";
import { FILTER, Input, Select } from "../ui/field.tsx";
import { Filters } from "../ui/filters.tsx";
import { useListKeys } from "../ui/list-keys.ts";
import { Empty, Page, PageHead } from "../ui/page.tsx";
import { PagedList } from "../ui/paged-list.tsx";
import { Search } from "../ui/search.tsx";
import { beginOf, isSpan, SpanSelect } from "../ui/span.tsx";
import { usePaged } from "../wire/paged.ts";
import { useHooks, useTenantNames } from "../wire/queries.ts";
import type { Payload, TurnLine, TurnOutcome } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import type { TurnFilter } from "./queries.ts";
import { TurnRow } from "./row.tsx";

/** How many rows are fetched at once. */
const A_PAGE = 100;
const HEIGHT = { wide: 33, narrow: 93 };
/** How often is looked for new turns, in milliseconds. */
const LOOK_EVERY_MS = 5_000;
/** How long somebody types nothing before it is searched, in milliseconds. */
const STILL_MS = 250;
const OUTCOMES: readonly TurnOutcome[] = ["blocked", "asked", "faulted", "allowed"];

/** What of an address is chosen in a filter. */
const CHOSEN = ["decision", "agent", "session", "hook", "tool", "tenant", "span", "since"];

/** Other tenants have other conversations. */
const NO_SESSION = { session: undefined, of: undefined };

type Address = Readonly<Record<string, string | undefined>>;

/** The filters that stand in the address. */
function filterOf(address: Address): TurnFilter {
  const text = (to: string, from: string): Record<string, string> => (address[from] === undefined || address[from] === "" ? {} : { [to]: address[from] });
  const decision = OUTCOMES.find((one) => one === address["decision"]);
  return { ...text("agentId", "agent"), ...text("sessionKey", "session"), ...text("tool", "tool"), ...text("hook", "hook"), ...text("text", "q"), ...(decision === undefined ? {} : { decision }) };
}

/** A value once it stayed the same for a while. */
function useStill<Value>(value: Value): Value {
  const [still, setStill] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setStill(value), STILL_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return still;
}

const rowsOf = ({ turns }: Payload<"turns.list">): readonly TurnLine[] => turns;
const idOf = ({ turnId }: TurnLine): string => turnId;

/** Turns, newest first. */
export function TurnsPage() {
  const words = useWords().turns;
  const { connection } = useWire();
  const seesAll = useMay("admin");
  const mayTalk = useMay("operator", "operator.write");
  const address = useSearch({ strict: false }) as Address;
  const asked = JSON.stringify(filterOf(address));
  const filter = useStill(asked);
  const span = address["span"] ?? "";
  useListKeys();
  const { since, until } = address;
  const range = useMemo(() => ({ ...(since !== undefined ? { since } : isSpan(span) ? { since: beginOf(span) } : {}), ...(until === undefined ? {} : { until }) }), [span, since, until]);
  const everywhere = useEverywhere();
  const tenants = useTenantNames();
  // A conversation is one tenant's.
  const of = everywhere && address["session"] !== undefined ? address["of"] : undefined;
  const query = useMemo(() => ({ ...(JSON.parse(filter) as TurnFilter), ...range, ...(of !== undefined ? { tenantId: of } : everywhere ? { allTenants: true } : {}) }), [filter, range, everywhere, of]);
  const list = usePaged(["turns", "list", query], (cursor) => connection.request("turns.list", { ...query, limit: A_PAGE, ...(cursor === undefined ? {} : { cursor }) }), rowsOf);
  const newer = useNewer(query, list.rows[0]);
  const isFiltered = asked !== "{}" || span !== "" || since !== undefined;
  return (
    <Page>
      <PageHead title={words.title} answer={seesAll ? words.answer : words.answerOwn} />
      <TurnFilters address={address} />
      <PagedList label={words.title} list={list} newer={newer} height={HEIGHT} idOf={idOf} empty={<Empty title={isFiltered ? words.none : words.empty}>{isFiltered ? words.noneAbout : mayTalk ? words.emptyAbout : words.emptyOnly}</Empty>}>
        {(turn) => <TurnRow turn={turn} tenant={everywhere ? tenants.get(turn.tenantId ?? "") : undefined} />}
      </PagedList>
    </Page>
  );
}

/** How many turns are newer than the first one that is shown. */
function useNewer(query: TurnFilter, first: TurnLine | undefined): number {
  const { connection } = useWire();
  const newest = useQuery({
    queryKey: ["turns", "newest", query],
    queryFn: async () => (await connection.request("turns.list", { ...query, limit: 50 })).turns,
    refetchInterval: LOOK_EVERY_MS,
    enabled: first !== undefined,
  });
  const known = newest.data ?? [];
  const at = known.findIndex(({ turnId }) => turnId === first?.turnId);
  return at === -1 ? known.filter(({ startedAt }) => first !== undefined && startedAt > first.startedAt).length : at;
}

function TurnFilters({ address }: { address: Address }) {
  const words = useWords();
  const navigate = useNavigate();
  const hooks = useHooks().data ?? [];
  const list = useId();
  const put = (what: Record<string, string | undefined>): void => {
    void navigate({ to: "/turns", search: (before: Record<string, unknown>) => ({ ...before, ...what }) as never, replace: true });
  };
  const set = (name: string, value: string): void => put({ ...(name === "span" ? { since: undefined, until: undefined } : {}), ...(name === "tenant" ? NO_SESSION : {}), [name]: value === "" ? undefined : value });
  const all: readonly string[] = [...new Set(hooks.map(({ name, id }) => name || id))];
  return (
    <Filters role="search" isChosen={CHOSEN.some((name) => (address[name] ?? "") !== "")} search={<Search label={words.turns.search} value={address["q"] ?? ""} choose={(text) => set("q", text)} />}>
      <Select className={FILTER} aria-label={words.executions.decision} value={address["decision"] ?? ""} onChange={(event) => set("decision", event.target.value)}>
        <option value="">{words.turns.anyOutcome}</option>
        {OUTCOMES.map((outcome) => (
          <option key={outcome} value={outcome}>
            {words.turns.outcomes[outcome]}
          </option>
        ))}
      </Select>
      <ChooseAgent by="id" className={FILTER} value={address["agent"] ?? ""} choose={(to) => set("agent", to)} />
      <ChooseSession className={FILTER} value={address["session"] ?? ""} tenant={address["of"]} choose={(key, of) => put({ session: key === "" ? undefined : key, of })} />
      <Input className={FILTER} list={list} aria-label={words.hooks.hook} placeholder={words.executions.anyHook} value={address["hook"] ?? ""} onChange={(event) => set("hook", event.target.value)} />
      <datalist id={list}>
        {all.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <Input className={`${FILTER} font-mono`} aria-label={words.test.tool} placeholder={words.turns.anyTool} value={address["tool"] ?? ""} onChange={(event) => set("tool", event.target.value)} />
      <ChooseTenants className={FILTER} value={address["tenant"] === EVERY_TENANT ? EVERY_TENANT : ""} choose={(to) => set("tenant", to)} />
      <SpanSelect className={FILTER} span={address["span"] ?? ""} any={address["since"] === undefined ? words.executions.anyTime : words.turns.givenTime} choose={(to) => set("span", to)} />
    </Filters>
  );
}
