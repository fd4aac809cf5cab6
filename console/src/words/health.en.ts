/** The texts of the page of health, in English. */
const count = (n: number, one: string, many: string): string => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export const healthEn = {
  title: "Health",
  loading: "Looking…",
  answer: (wrong: readonly string[]) => (wrong.length === 0 ? "Everything that is watched here does its work." : `${wrong.join("; ")}.`),
  wrong: {
    tripped: "A hook was switched off by its breaker",
    off: "A hook cannot act here",
    spent: "The budget for judges is spent",
    low: "The budget for judges is low",
    node: "A node is away or has another configuration",
  },
  breakers: "Hooks that do not act",
  noBreaker: (on: number) => `None: ${count(on, "hook is", "hooks are")} on, and no breaker is open.`,
  breakersAbout: "Those that nobody switched off, and that do not act all the same.",
  whileTripped: { block: "What it matches is refused until it is reset.", allow: "What it matches passes until it is reset." },
  noAgents: "The agents that it was for are gone.",
  nodes: {
    title: "Nodes",
    node: "Node",
    self: "this one",
    state: "State",
    online: "online",
    away: "away",
    silent: (s: number) => `silent for ${s} s`,
    differs: (agents: string) => `takes no turns of ${agents}: most nodes have another configuration of them`,
    addresses: "Addresses",
    turns: "Turns",
    version: "Version",
    versionOf: (version: string, level: number) => `${version}, schema ${level}`,
  },
};
