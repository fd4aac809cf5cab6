import { useQuery, type UseQueryResult } from "@tanstack/react-query";

import { useWire } from "../wire/use-wire.ts";
import { type Lately, lately } from "./state.ts";

/** What each hook did lately. */
export function useLately(): UseQueryResult<Lately> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["hooks", "counts"], queryFn: async (): Promise<Lately> => lately((await connection.request("hooks.counts", {})).hooks) });
}
