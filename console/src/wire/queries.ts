import { useQuery, type UseQueryResult } from "@tanstack/react-query";

import type { Agent, Approval, ConfiguredHook, GuardLine, Hook, Payload, SessionLine, Tenant } from "./types.ts";
import { useMay, useWire } from "./use-wire.ts";

type Listed = Payload<"hooks.list">;

function useListed<Part>(select: (listed: Listed) => Part): UseQueryResult<Part> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["hooks", "list"], queryFn: () => connection.request("hooks.list", {}), select });
}

const rules = ({ hooks }: Listed): readonly Hook[] => hooks;
const configured = (listed: Listed): readonly ConfiguredHook[] => listed.configured;

const standing = ({ notArmed }: Listed): ReadonlyMap<string, GuardLine> => new Map(notArmed.flatMap((line) => (line.hookId === null ? [] : [[line.hookId, line] as const])));
const NOTHING: ReadonlyMap<string, GuardLine> = new Map();

/** The hooks that one sees, in running order. */
export const useHooks = (): UseQueryResult<readonly Hook[]> => useListed(rules);

/** The hooks of the configuration and the texts of skills, in running order. */
export const useConfigured = (): UseQueryResult<readonly ConfiguredHook[]> => useListed(configured);

/** Whether a rule is known to be gone. */
export function useIsGone(id: string | null): boolean {
  const { data, isFetching } = useHooks();
  return id !== null && data !== undefined && !isFetching && !data.some((hook) => hook.id === id);
}

/** How the rules stand that are on and not proven to work, by their ids. */
export const useStanding = (): ReadonlyMap<string, GuardLine> => useListed(standing).data ?? NOTHING;

/** How often it is looked whether a hook answered that is not proven, in milliseconds. */
const PROVEN_EVERY_MS = 5_000;

/** Of a breaker the server tells. */
const isUnproven = ({ notArmed }: Listed): boolean => notArmed.some(({ state }) => state === "unproven" || state === "broken");

/** Looks for as long as hooks are here that are not proven: the first answer proves one, and of that the server tells nobody.
 * Whether there are any. */
export function useProofs(): boolean {
  const { connection } = useWire();
  const found = useQuery({
    queryKey: ["hooks", "list"],
    queryFn: () => connection.request("hooks.list", {}),
    select: isUnproven,
    refetchInterval: ({ state }) => (state.data !== undefined && isUnproven(state.data) ? PROVEN_EVERY_MS : false),
  });
  return found.data ?? false;
}

/** The agents; with `everywhere` once for each tenant. */
export function useAgents(everywhere = false): UseQueryResult<readonly Agent[]> {
  const { connection } = useWire();
  return useQuery({ queryKey: everywhere ? ["agents", "everywhere"] : ["agents"], queryFn: async () => (await connection.request("agents.list", everywhere ? { allTenants: true } : {})).agents });
}

const NO_AGENTS: readonly Agent[] = [];

/** The agents by the ids that records of `tenant` have for them, or else those of one's own. */
export function useAgentsOf(tenant: string | undefined): readonly Agent[] {
  const { me } = useWire();
  const isElsewhere = tenant !== undefined && tenant !== me.tenant_id && me.is_owner;
  const agents = useAgents(isElsewhere).data ?? NO_AGENTS;
  return isElsewhere ? agents.filter(({ tenantId }) => tenantId === tenant) : agents;
}

/** How often what other tenants have is looked for, in milliseconds: of that the server tells nobody here. */
const ELSEWHERE_EVERY_MS = 5_000;

/** The conversations, those that changed last first: of this tenant, or of every one. */
export function useSessions(everywhere = false): UseQueryResult<readonly SessionLine[]> {
  const { connection } = useWire();
  return useQuery({
    queryKey: everywhere ? ["sessions", "everywhere"] : ["sessions"],
    queryFn: async () => (await connection.request("sessions.list", { limit: 200, ...(everywhere ? { allTenants: true } : {}) })).sessions,
    refetchInterval: everywhere ? ELSEWHERE_EVERY_MS : false,
  });
}

/** The approvals: those that wait, or all; of this tenant, or of every one. */
export function useApprovals(all: boolean, everywhere = false): UseQueryResult<readonly Approval[]> {
  const { connection } = useWire();
  return useQuery({
    queryKey: ["approvals", "list", all, everywhere],
    queryFn: async () => (await connection.request("approvals.list", { all, ...(everywhere ? { allTenants: true } : {}) })).approvals,
    enabled: useMay("operator", "operator.approvals"),
    refetchInterval: everywhere ? ELSEWHERE_EVERY_MS : false,
    // Whoever did not sign in answers no approvals: the server says so, and it stays that way.
    retry: false,
  });
}

/** How many approvals wait: in this tenant, or in every one. */
export function useWaiting(everywhere: boolean): number {
  return useApprovals(false, everywhere).data?.length ?? 0;
}

/** What the tenants are called, by their ids. */
export function useTenantNames(): ReadonlyMap<string, string> {
  return new Map((useTenants().data ?? []).map(({ id, name, slug }) => [id, name || slug]));
}

/** All tenants; owners see them. */
export function useTenants(): UseQueryResult<readonly Tenant[]> {
  const { connection } = useWire();
  return useQuery({ queryKey: ["settings", "tenants"], queryFn: async () => (await connection.request("tenants.list", {})).tenants, enabled: useMay("owner") });
}
