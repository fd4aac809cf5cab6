import { stateOf } from "../hooks/state.ts";
import type { Budget, Hook, Node } from "../wire/types.ts";

export type Wrong = "tripped" | "off" | "spent" | "low" | "node";

/** Whether less than a fifth of a budget is left: the server's own bound for telling it. */
export const isLow = ({ remaining, budgetTotal }: Pick<Budget, "remaining" | "budgetTotal">): boolean => remaining * 5 < budgetTotal;

/** What does not do its work, the worst first. Pure. */
export function wrongWith(hooks: readonly Hook[], budget: Budget | undefined, nodes: readonly Node[]): Wrong[] {
  const states = hooks.map(stateOf);
  const found: readonly (readonly [Wrong, boolean])[] = [
    ["tripped", states.includes("tripped")],
    ["off", states.includes("edition") || states.includes("agents")],
    ["spent", budget !== undefined && budget.remaining <= 0],
    ["low", budget !== undefined && budget.remaining > 0 && isLow(budget)],
    ["node", nodes.some(({ online, differs }) => !online || differs.length > 0)],
  ];
  return found.filter(([, is]) => is).map(([one]) => one);
}
