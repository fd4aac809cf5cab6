import { queryOptions, useQuery, type UseQueryResult } from "@tanstack/react-query";

import type { PintleClient } from "../wire/client.ts";
import type { Params, SeenCall } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import type { Family } from "./view.ts";

export type TurnFilter = Omit<Params<"turns.list">, "limit" | "cursor" | "since" | "until">;

/** How often a turn that goes on is looked at, in milliseconds. */
const LOOK_EVERY_MS = 2_000;

/** Whether more may come of a turn than was read of it. */
const goesOn = (family: Family | undefined): boolean => family !== undefined && ["running", "waiting"].includes(family.turn.turn.ending);

const turnQuery = (connection: Pick<PintleClient, "request">, id: string) =>
  queryOptions({ queryKey: ["turns", "one", id], queryFn: (): Promise<Family> => connection.request("turns.get", { turnId: id }) });

/** One turn with those of its sub-agents. */
export function useTurn(id: string, enabled = true): UseQueryResult<Family> {
  const { connection } = useWire();
  return useQuery({ ...turnQuery(connection, id), enabled, refetchInterval: ({ state }) => (goesOn(state.data) ? LOOK_EVERY_MS : false) });
}

/** One turn for those who hear what becomes of it: it is read once, and again by whoever comes back while it goes on. */
export const heardTurn = (connection: Pick<PintleClient, "request">, id: string) =>
  queryOptions({ ...turnQuery(connection, id), staleTime: ({ state }) => (goesOn(state.data) ? 0 : Infinity), retry: false });

/** What the model was sent in a round, 0 for the plan. */
export function useSeen(turnId: string, round: number): UseQueryResult<SeenCall> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["turns", "seen", turnId, round], queryFn: async () => (await connection.request("turns.seen", { turnId, round })).call, retry: false });
}
