import { stateOf } from "../hooks/state.ts";
import type { Budget, DoctorCheck, Hook, Node, Payload } from "../wire/types.ts";

export type Wrong = "doctor" | "part" | "unproven" | "tripped" | "off" | "spent" | "low" | "node";

/** Whether less than a fifth of a budget is left: the server's own bound for telling it. */
export const isLow = ({ remaining, budgetTotal }: Pick<Budget, "remaining" | "budgetTotal">): boolean => remaining * 5 < budgetTotal;

/** What does not do its work, the worst first. Pure. */
export function wrongWith(hooks: readonly Hook[], budget: Budget | undefined, nodes: readonly Node[], health?: Payload<"health.get">, doctor?: Payload<"doctor.run">): Wrong[] {
  const states = hooks.map(stateOf);
  const found: readonly (readonly [Wrong, boolean])[] = [
    ["doctor", doctor?.checks.some(({ state }) => state === "failed") ?? false],
    ["part", health !== undefined && [health.store, ...health.providers].some(({ ok }) => !ok)],
    ["part", health !== undefined && [...health.processHooks, ...health.mcpServers].some(({ state }) => state !== "up")],
    ["unproven", health !== undefined && health.guards.counts.unproven + health.guards.counts.broken > 0],
    ["tripped", states.includes("tripped")],
    ["off", states.includes("edition") || states.includes("agents")],
    ["spent", budget !== undefined && budget.remaining <= 0],
    ["low", budget !== undefined && budget.remaining > 0 && isLow(budget)],
    ["node", nodes.some(({ online, differs }) => !online || differs.length > 0)],
  ];
  return [...new Set(found.filter(([, is]) => is).map(([one]) => one))];
}

const ORDER: readonly DoctorCheck["state"][] = ["failed", "note", "ok"];

/** What doctor found, the failures first, else in its order. Pure. */
export const worstFirst = (checks: readonly DoctorCheck[]): readonly DoctorCheck[] => ORDER.flatMap((state) => checks.filter((check) => check.state === state));

/** The guards that doctor could not prove: they are on, and did not stop what they shall stop. Pure. */
export const unprovenBy = (doctor: Payload<"doctor.run"> | undefined): readonly DoctorCheck[] => (doctor?.checks ?? []).filter(({ what, state }) => what === "guard" && state === "failed");
