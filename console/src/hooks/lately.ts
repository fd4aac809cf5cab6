import { useQuery, type UseQueryResult } from "@tanstack/react-query";

import { useWire } from "../wire/use-wire.ts";
import { type Lately, lately } from "./state.ts";

/** What each hook did lately: in this tenant, or in every one. */
export function useLately(everywhere = false): UseQueryResult<Lately> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["hooks", "counts", everywhere], queryFn: async (): Promise<Lately> => lately((await connection.request("hooks.counts", everywhere ? { allTenants: true } : {})).hooks) });
}
