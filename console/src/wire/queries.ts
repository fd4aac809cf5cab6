import { useQuery, type UseQueryResult } from "@tanstack/react-query";

import type { Agent, Approval, Hook, SessionRow } from "./types.ts";
import { useMay, useWire } from "./use-wire.ts";

/** The hooks that one sees, in running order. */
export function useHooks(): UseQueryResult<Hook[]> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["hooks", "list"], queryFn: async () => (await connection.call("hooks.list", {})).hooks });
}

/** The agents. */
export function useAgents(): UseQueryResult<Agent[]> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["agents"], queryFn: async () => (await connection.call("agents.list", {})).agents });
}

/** The conversations, those that changed last first. */
export function useSessions(): UseQueryResult<SessionRow[]> {
  const { connection } = useWire();
  return useQuery({
    queryKey: ["sessions"],
    queryFn: async () => (await connection.call("sessions.list", { limit: 200 })).sessions,
  });
}

/** The approvals: those that wait, or all. */
export function useApprovals(all: boolean): UseQueryResult<Approval[]> {
  const { connection } = useWire();
  return useQuery({
    queryKey: ["approvals", "list", all],
    queryFn: async () => (await connection.call("approvals.list", { all })).approvals,
    enabled: useMay("operator"),
    // Whoever did not sign in answers no approvals: the server says so, and it stays that way.
    retry: false,
  });
}

/** How many approvals wait. */
export function useWaiting(): number {
  return useApprovals(false).data?.length ?? 0;
}
