import { count } from "./count.ts";

/** The texts of the overview, in English. */
export const overview = {
  title: "Overview",
  loading: "Loading…",
  answer: (bad: number, on: number, all: number, waiting: number) =>
    `${bad === 0 ? (all === 0 ? "No hook guards this tenant yet." : on === 0 ? "No hook is on." : `${count(on, "hook is", "hooks are")} on, and nothing is wrong with any.`) : `${count(bad, "hook needs", "hooks need")} attention.`}${waiting === 0 ? "" : ` ${count(waiting, "call waits", "calls wait")} for a person.`}`,
  guards: { armed: "armed", unproven: "unproven", broken: "broken", tripped: "tripped", disabled: "off" },
  lookAt: "Look at these first",
  waiting: "approvals",
  kinds: { allowed: "allowed", asked: "asked", faults: "faults", blocked: "blocked" },
  over: "What hooks decided",
  chart: "What hooks decided, over time",
  now: "now",
  from: "From",
  partial: "There were more: only the newest are counted here.",
  asTable: "As a table",
  lastBlocked: "Recently blocked",
  all: "All of them",
  blocking: "Most blocks",
  slowest: "Slowest (95 of 100 answers are faster)",
  runs: (n: number) => count(n, "run", "runs"),
  noBlocks: "No hook blocked anything in this time.",
  noHooks: "No hook was asked in this time.",
  budget: "Budget of judges this month",
  spent: (used: string, total: string) => `${used} of ${total} tokens`,
  changes: "Recent changes",
  noChanges: "No hook was changed yet.",
  did: (action: string, actor: string) => `${action} by ${actor === "system:boot" ? "Pintle itself" : actor}`,
  actions: { created: "created", updated: "changed", deleted: "deleted", toggled: "switched on or off", switchedOn: "switched on", switchedOff: "switched off", reset: "reset", tripped: "tripped", restored: "restored" },
};
