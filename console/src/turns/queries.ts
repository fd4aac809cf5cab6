import { useQuery, type UseQueryResult } from "@tanstack/react-query";

import type { Params, SeenCall } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import type { Family } from "./view.ts";

export type TurnFilter = Omit<Params<"turns.list">, "limit" | "cursor" | "since" | "until">;

/** How often a turn that goes on is looked at, in milliseconds. */
const LOOK_EVERY_MS = 2_000;

/** One turn with those of its sub-agents. */
export function useTurn(id: string, enabled = true): UseQueryResult<Family> {
  const { connection } = useWire();
  return useQuery({
    queryKey: ["turns", "one", id],
    queryFn: () => connection.request("turns.get", { turnId: id }),
    enabled,
    refetchInterval: ({ state }) => {
      const ending = state.data?.turn.turn.ending;
      return ending === "running" || ending === "waiting" ? LOOK_EVERY_MS : false;
    },
  });
}

/** What the model was sent in a round, 0 for the plan. */
export function useSeen(turnId: string, round: number): UseQueryResult<SeenCall> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["turns", "seen", turnId, round], queryFn: async () => (await connection.request("turns.seen", { turnId, round })).call, retry: false });
}
