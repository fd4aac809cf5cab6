import { useState } from "react";

import type { Execution, Params } from "../wire/types.ts";
import { useWatch } from "../wire/use-watch.ts";
import { useEvent } from "../wire/use-wire.ts";

type Query = Params<"hooks.history">;

/** Most rows that wait unseen; more are fetched anyway when somebody wants to see them. */
const MOST = 500;

/** Whether an execution is one of those that a list shows. Pure. */
export function isOf(row: Execution, query: Query): boolean {
  return (
    (query.hookId === undefined || row.hook_id === query.hookId) &&
    (query.event === undefined || row.event === query.event) &&
    (query.decision === undefined || row.decision === query.decision) &&
    (query.sessionId === undefined || row.session_key === query.sessionId)
  );
}

/** How many executions came that the list does not show yet. They wait until somebody wants to see them. */
export function useLive(query: Query, shown: readonly Execution[]): number {
  const [came, setCame] = useState<readonly Execution[]>([]);
  useWatch();
  useEvent("hooks.execution", (row) => setCame((so) => [row, ...so].slice(0, MOST)));
  const known = new Set(shown.map(({ id }) => id));
  return came.filter((row) => isOf(row, query) && !known.has(row.id)).length;
}
