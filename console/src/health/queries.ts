import { useQuery, type UseQueryResult } from "@tanstack/react-query";

import type { Budget, Node, Payload } from "../wire/types.ts";
import { useEvent, useMay, useWire } from "../wire/use-wire.ts";

/** How often the nodes are looked at, in milliseconds: they say of themselves every few seconds. */
const NODES_EVERY_MS = 5_000;

/** How often everything else is looked at while the page is open, in milliseconds. */
const HEALTH_EVERY_MS = 15_000;

/** What hooks may spend on judges. */
export function useBudget(): UseQueryResult<Budget> {
  const { connection } = useWire();
  const budget = useQuery({ queryKey: ["budget"], queryFn: () => connection.request("hooks.budget.get", {}) });
  useEvent("hooks.budget", () => void budget.refetch());
  return budget;
}

/** How providers, the store, children and guards stand. */
export function useHealth(): UseQueryResult<Payload<"health.get">> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["health"], queryFn: () => connection.request("health.get", {}), refetchInterval: HEALTH_EVERY_MS });
}

/** The processes that share the store; owners see them. */
export function useNodes(): UseQueryResult<readonly Node[]> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["nodes"], queryFn: async () => (await connection.request("nodes.list", {})).nodes, enabled: useMay("owner"), refetchInterval: NODES_EVERY_MS });
}
