import { useQuery, type UseQueryResult } from "@tanstack/react-query";

import type { ApiKey, ConsoleSession, Member, Payload } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";

/** The devices on which one is signed in. */
export function useDevices(enabled: boolean): UseQueryResult<readonly ConsoleSession[]> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["settings", "devices"], queryFn: async () => (await connection.request("auth.sessions.list", {})).sessions, enabled });
}

export function useMembers(): UseQueryResult<readonly Member[]> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["settings", "members"], queryFn: async () => (await connection.request("members.list", {})).members, enabled: useMay("admin") });
}

export function useKeys(): UseQueryResult<readonly ApiKey[]> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["settings", "keys"], queryFn: async () => (await connection.request("api_keys.list", {})).apiKeys, enabled: useMay("admin") });
}

/** Who is told what happens, looked at again while somebody watches. */
export function useWebhooks(): UseQueryResult<Payload<"webhooks.list">> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["settings", "webhooks"], queryFn: () => connection.request("webhooks.list", {}), refetchInterval: 5_000 });
}
