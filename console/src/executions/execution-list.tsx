import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef } from "react";

import { Button } from "../ui/button.tsx";
import { Select } from "../ui/field.tsx";
import { useListKeys } from "../ui/list-keys.ts";
import { Card, Empty } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { Sign } from "../ui/sign.tsx";
import { When } from "../ui/when.tsx";
import { useHooks } from "../wire/queries.ts";
import { DECISIONS, EVENTS, type Execution, type Params } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { useLive } from "./use-live.ts";

const ROW_PX = 34;
const SPANS: Readonly<Record<string, number>> = { hour: 3_600_000, day: 86_400_000, week: 604_800_000 };

type Query = Params<"hooks.history">;

/** The filters that stand in the address. */
function useQueryOfAddress(hookId: string | undefined): { query: Query; span: string } {
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const event = EVENTS.find((one) => one === search["event"]);
  const decision = DECISIONS.find((one) => one === search["decision"]);
  const hook = hookId ?? search["hook"];
  const session = search["session"];
  return {
    span: search["span"] ?? "",
    query: {
      ...(hook === undefined ? {} : { hookId: hook }),
      ...(event === undefined ? {} : { event }),
      ...(decision === undefined ? {} : { decision }),
      ...(session === undefined ? {} : { sessionId: session }),
    },
  };
}

/** The moment at which a span began. A cursor belongs to its question, so it stays the same while pages are turned. */
function useSince(span: string): string | undefined {
  return useMemo(() => {
    const length = SPANS[span];
    return length === undefined ? undefined : new Date(Date.now() - length).toISOString();
  }, [span]);
}

/** What hooks answered, newest first, page by page. */
export function ExecutionList({ hookId, to, params }: { hookId?: string; to: string; params?: Record<string, string> }) {
  const words = useWords().executions;
  const { connection } = useWire();
  const { query, span } = useQueryOfAddress(hookId);
  useListKeys();
  const since = useSince(span);
  const pages = useInfiniteQuery({
    queryKey: ["executions", query, since],
    initialPageParam: "",
    queryFn: ({ pageParam }) =>
      connection.request("hooks.history", {
        ...query,
        ...(since === undefined ? {} : { since }),
        ...(pageParam === "" ? {} : { cursor: pageParam }),
      }),
    getNextPageParam: ({ nextCursor }) => (nextCursor === "" ? undefined : nextCursor),
    refetchOnMount: "always",
  });
  const rows = pages.data?.pages.flatMap((page) => page.executions) ?? [];
  const waiting = useLive(query, rows);
  return (
    <div>
      <Filters hookId={hookId} query={query} span={span} to={to} params={params} />
      {waiting > 0 && (
        <div className="mb-2">
          <Button onClick={() => void pages.refetch()}>{words.newer(waiting)}</Button>
        </div>
      )}
      {pages.error !== null && <Problem error={pages.error} retry={() => void pages.refetch()} />}
      {pages.isPending && <p className="text-muted">{words.loading}</p>}
      {pages.data !== undefined && rows.length === 0 && <Empty title={words.empty}>{words.emptyAbout}</Empty>}
      {rows.length > 0 && <Rows rows={rows} showHook={hookId === undefined} />}
      {pages.hasNextPage && (
        <div className="mt-2">
          <Button disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            {words.more}
          </Button>
        </div>
      )}
    </div>
  );
}

function Filters({ hookId, query, span, to, params }: { hookId: string | undefined; query: Query; span: string; to: string; params: Record<string, string> | undefined }) {
  const words = useWords();
  const hooks = useHooks().data ?? [];
  const navigate = useNavigate();
  const set = (name: string, value: string): void => {
    void navigate({ to, params: params ?? {}, search: (before: Record<string, unknown>) => ({ ...before, [name]: value === "" ? undefined : value }), replace: true } as never);
  };
  return (
    <div className="mb-3 flex flex-wrap gap-2">
      {hookId === undefined && (
        <Select data-search className="w-auto! max-w-60" aria-label={words.hooks.hook} value={query.hookId ?? ""} onChange={(event) => set("hook", event.target.value)}>
          <option value="">{words.executions.anyHook}</option>
          {hooks.map((hook) => (
            <option key={hook.id} value={hook.id}>
              {hook.name || hook.id}
            </option>
          ))}
        </Select>
      )}
      {hookId === undefined && (
        <Select className="w-auto!" aria-label={words.hooks.fields.event} value={query.event ?? ""} onChange={(event) => set("event", event.target.value)}>
          <option value="">{words.hooks.anyEvent}</option>
          {EVENTS.map((event) => (
            <option key={event}>{event}</option>
          ))}
        </Select>
      )}
      <Select className="w-auto!" aria-label={words.executions.decision} value={query.decision ?? ""} onChange={(event) => set("decision", event.target.value)}>
        <option value="">{words.executions.anyDecision}</option>
        {DECISIONS.map((decision) => (
          <option key={decision} value={decision}>
            {words.decisions[decision]}
          </option>
        ))}
      </Select>
      <Select className="w-auto!" aria-label={words.executions.time} value={span} onChange={(event) => set("span", event.target.value)}>
        <option value="">{words.executions.anyTime}</option>
        {(["hour", "day", "week"] as const).map((one) => (
          <option key={one} value={one}>
            {words.executions.spans[one]}
          </option>
        ))}
      </Select>
    </div>
  );
}

function Rows({ rows, showHook }: { rows: readonly Execution[]; showHook: boolean }) {
  const words = useWords();
  const place = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => place.current, estimateSize: () => ROW_PX, overscan: 12 });
  useEffect(() => {
    virtual.measure();
  }, [virtual, rows.length]);
  return (
    <Card>
      <div ref={place} tabIndex={0} role="list" aria-label={words.executions.title} className="max-h-[calc(100dvh-240px)] overflow-y-auto">
        <div className="relative w-full" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, start, key }) => {
            const row = rows[index];
            return row === undefined ? null : (
              <div
                key={key}
                data-index={index}
                ref={virtual.measureElement}
                role="listitem"
                className="absolute inset-x-0 top-0 border-b border-line"
                style={{ transform: `translateY(${start}px)` }}
              >
                <Row row={row} showHook={showHook} />
              </div>
            );
          })}
        </div>
      </div>
    </Card>
  );
}

function Row({ row, showHook }: { row: Execution; showHook: boolean }) {
  const words = useWords();
  return (
    <Link
      data-row
      to="/executions/$id"
      params={{ id: row.id }}
      className="grid grid-cols-[88px_96px_minmax(0,1fr)_minmax(0,2fr)_72px] items-center gap-2 px-3 py-1.5 -outline-offset-2! hover:bg-tint max-sm:grid-cols-[96px_minmax(0,1fr)]"
    >
      <span className="text-muted max-sm:hidden">
        <When at={row.created_at} />
      </span>
      <span>
        <Sign kind={row.decision} word={words.decisions[row.decision]} />
      </span>
      <span className="truncate">
        {showHook && <span className="font-medium">{row.hook_name || row.hook_id} </span>}
        {row.tool_name !== null && <code>{row.tool_name}</code>}
        {!showHook && row.tool_name === null && <code>{row.event}</code>}
      </span>
      <span className="truncate text-muted max-sm:col-span-2">{row.reason ?? row.error ?? ""}</span>
      <span className="text-right text-muted max-sm:hidden">{row.duration_ms} ms</span>
    </Link>
  );
}
