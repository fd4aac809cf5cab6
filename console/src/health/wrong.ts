import { stateOf } from "../hooks/state.ts";
import type { Budget, DoctorCheck, DoctorFindings, Hook, Node, Payload } from "../wire/types.ts";

export type Wrong = "doctor" | "part" | "skill" | "broken" | "unproven" | "refuses" | "passes" | "off" | "spent" | "low" | "node";

/** Whether less than a fifth of a budget is left: the server's own bound for telling it. */
export const isLow = ({ remaining, budgetTotal }: Pick<Budget, "remaining" | "budgetTotal">): boolean => remaining * 5 < budgetTotal;

/** What does not do its work, the worst first. Pure. */
export function wrongWith(hooks: readonly Hook[], budget: Budget | undefined, nodes: readonly Node[], health?: Payload<"health.get">, doctor?: DoctorFindings): Wrong[] {
  const states = hooks.map(stateOf);
  const found: readonly (readonly [Wrong, boolean])[] = [
    ["doctor", doctor?.checks.some(({ state }) => state === "failed") ?? false],
    ["part", health !== undefined && [health.store, ...health.providers].some(({ ok }) => !ok)],
    ["part", health !== undefined && [...health.processHooks, ...health.mcpServers].some(({ state }) => state !== "up")],
    ["skill", health !== undefined && health.skills.length > 0],
    ["broken", health !== undefined && health.guards.counts.broken > 0],
    ["unproven", health !== undefined && health.guards.counts.unproven > 0],
    ["refuses", hooks.some((hook) => stateOf(hook) === "tripped" && hook.on_trip !== "allow")],
    ["passes", hooks.some((hook) => stateOf(hook) === "tripped" && hook.on_trip === "allow")],
    ["off", states.includes("edition") || states.includes("agents")],
    ["spent", budget !== undefined && budget.remaining <= 0],
    ["low", budget !== undefined && budget.remaining > 0 && isLow(budget)],
    ["node", nodes.some(({ online, differs }) => !online || differs.length > 0)],
  ];
  return [...new Set(found.filter(([, is]) => is).map(([one]) => one))];
}

/** What doctor found last, whoever ran it. Pure. */
export function lastFound(ran: DoctorFindings | undefined, kept: DoctorFindings | null | undefined): DoctorFindings | undefined {
  if (ran === undefined || kept === undefined || kept === null) {
    return ran ?? kept ?? undefined;
  }
  return Date.parse(kept.at) > Date.parse(ran.at) ? kept : ran;
}

const ORDER: readonly DoctorCheck["state"][] = ["failed", "note", "ok"];

/** What doctor found, the failures first, else in its order. Pure. */
export const worstFirst = (checks: readonly DoctorCheck[]): readonly DoctorCheck[] => ORDER.flatMap((state) => checks.filter((check) => check.state === state));

/** The guards that doctor could not prove: they are on, and did not stop what they shall stop. Pure. */
export const unprovenBy = (doctor: DoctorFindings | undefined): readonly DoctorCheck[] => (doctor?.checks ?? []).filter(({ what, state }) => what === "guard" && state === "failed");
