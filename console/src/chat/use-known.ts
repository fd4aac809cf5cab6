import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { heardTurn } from "../turns/queries.ts";
import { useApprovals } from "../wire/queries.ts";
import { useWire } from "../wire/use-wire.ts";
import { withAnswers } from "./calls.ts";
import { outcomesOf, withKnownOutcomes } from "./known-turns.ts";
import type { Item } from "./transcript.ts";

/** How many turns of a conversation are looked for; how many of those in which something was stopped are read, and how many of the others that made calls. */
const TURNS = 50;
const READ = 5;

/** The items of a conversation with what records know of them: nobody who comes later has heard it. */
export function useKnown(sessionKey: string, items: readonly Item[]): readonly Item[] {
  const { connection } = useWire();
  // Whoever was there has heard what came of a call; of one without a result nothing came yet.
  const isUnknown = items.some((item) => item.kind === "call" && item.result !== undefined && item.isError === undefined && item.blocked === undefined);
  const turns = useQuery({
    queryKey: ["turns", "of", sessionKey],
    queryFn: async () => (await connection.request("turns.list", { sessionKey, limit: TURNS })).turns,
    enabled: isUnknown,
    retry: false,
  });
  const own = (turns.data ?? []).filter(({ calls, subAgent }) => calls > 0 && !subAgent);
  const read = [...own.filter(({ blocked }) => blocked > 0).slice(0, READ), ...own.filter(({ blocked }) => blocked === 0).slice(0, READ)];
  const outcomes = useQueries({
    queries: read.map(({ turnId }) => heardTurn(connection, turnId)),
    combine: (found) => new Map(found.flatMap(({ data }) => (data === undefined ? [] : [...outcomesOf(data.turn)]))),
  });
  const answers = useApprovals(true).data;
  return useMemo(() => withAnswers(withKnownOutcomes(items, outcomes), answers ?? []), [items, outcomes, answers]);
}
