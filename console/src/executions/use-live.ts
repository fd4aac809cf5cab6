import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import type { Execution, Params } from "../wire/types.ts";
import { useWatch } from "../wire/use-watch.ts";
import { useEvent, useWire } from "../wire/use-wire.ts";

type Query = Params<"hooks.history">;

/** Most rows that wait unseen; more are fetched anyway when somebody wants to see them. */
const MOST = 500;
/** How often what came is counted, in milliseconds: hooks may answer 50 times a second. */
const COUNT_EVERY_MS = 500;
/** How many of the newest are looked at after the connection was away. */
const LOOKED_AT = 200;

/** Whether an execution is one of those that a list shows. Pure. */
export function isOf(row: Execution, query: Query): boolean {
  return (
    (query.tenantId === undefined || row.tenant_id === query.tenantId) &&
    (query.hookId === undefined || row.hook_id === query.hookId) &&
    (query.event === undefined || row.event === query.event) &&
    (query.decision === undefined || row.decision === query.decision) &&
    (query.fault === undefined || row.metadata["fault"] === query.fault) &&
    (query.sessionId === undefined || row.session_key === query.sessionId) &&
    (query.agentId === undefined || row.agent_id === query.agentId)
  );
}

/** How many executions came that the list does not show yet. They wait until somebody wants to see them. */
export function useLive(query: Query, shown: readonly Execution[]): number {
  const [came, setCame] = useState<readonly Execution[]>([]);
  const { connection } = useWire();
  const waiting = useRef<Execution[]>([]);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const take = useCallback((rows: readonly Execution[]) => {
    waiting.current.push(...rows);
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      const all = waiting.current.splice(0).reverse();
      setCame((so) => [...all, ...so].slice(0, MOST));
    }, COUNT_EVERY_MS);
  }, []);
  useWatch();
  useEvent("hooks.execution", (row) => take([row]));
  // What was missed is fetched, and waits with the others. Without an answer the connection is away again.
  const missed = (): void => void connection.request("hooks.history", { ...query, limit: LOOKED_AT }).then(({ executions }) => take(executions)).catch(() => undefined);
  useEvent("reconnected", missed);
  useEvent("gap", missed);
  return useMemo(() => {
    const newest = shown[0]?.created_at ?? "";
    const known = new Set(shown.slice(0, MOST).map(({ id }) => id));
    return new Set(came.filter((row) => isOf(row, query) && row.created_at >= newest && !known.has(row.id)).map(({ id }) => id)).size;
  }, [came, query, shown]);
}
