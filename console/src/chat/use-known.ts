import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { useApprovals } from "../wire/queries.ts";
import { useWire } from "../wire/use-wire.ts";
import { withAnswers } from "./calls.ts";
import { blocksOf, withKnownBlocks } from "./known-turns.ts";
import type { Item } from "./transcript.ts";

/** How many turns of a conversation are looked for, and how many of those in which something was stopped are read. */
const TURNS = 50;
const READ = 5;

/** The items of a conversation with what records know of them: nobody who comes later has heard it. */
export function useKnown(sessionKey: string, items: readonly Item[], isQuiet: boolean): readonly Item[] {
  const { connection } = useWire();
  // Whoever was there has heard what came of a call.
  const isUnknown = items.some((item) => item.kind === "call" && item.isError === undefined && item.blocked === undefined);
  const turns = useQuery({
    queryKey: ["turns", "of", sessionKey],
    queryFn: async () => (await connection.request("turns.list", { sessionKey, limit: TURNS })).turns,
    enabled: isQuiet && isUnknown,
    retry: false,
  });
  const stopped = (turns.data ?? []).filter(({ blocked, subAgent }) => blocked > 0 && !subAgent).slice(0, READ);
  const blocks = useQueries({
    queries: stopped.map(({ turnId }) => ({ queryKey: ["turns", "one", turnId], queryFn: () => connection.request("turns.get", { turnId }), staleTime: Infinity, retry: false })),
    combine: (found) => new Map(found.flatMap(({ data }) => (data === undefined ? [] : [...blocksOf(data.turn)]))),
  });
  const answers = useApprovals(true).data;
  return useMemo(() => withAnswers(withKnownBlocks(items, blocks), answers ?? []), [items, blocks, answers]);
}
