import type { ConfiguredHook, Execution, Hook } from "../wire/types.ts";

/** Whether a hook acts, and if not, why. */
export type HookState = "on" | "off" | "tripped" | "edition" | "agents";

export function stateOf(hook: Pick<Hook, "enabled" | "tripped_at" | "disabled_reason">): HookState {
  if (hook.tripped_at !== null) {
    return "tripped";
  }
  if (hook.enabled) {
    return "on";
  }
  if (hook.disabled_reason === "edition") {
    return "edition";
  }
  return hook.disabled_reason === "no_agents" ? "agents" : "off";
}

/** What is known of what a hook did lately. */
export interface Lately {
  readonly last: string;
  readonly runs: number;
  readonly blocks: number;
}

/** Of the newest executions, what each hook did. */
export function lately(executions: readonly Execution[]): ReadonlyMap<string, Lately> {
  const all = new Map<string, Lately>();
  for (const { hook_id, created_at, decision } of executions) {
    if (hook_id !== null) {
      const so = all.get(hook_id) ?? { last: created_at, runs: 0, blocks: 0 };
      all.set(hook_id, { ...so, runs: so.runs + 1, blocks: so.blocks + (decision === "block" ? 1 : 0) });
    }
  }
  return all;
}

/** The hooks that somebody looks for. */
export interface HookFilter {
  readonly text: string;
  readonly event: string;
  readonly handler: string;
  readonly state: string;
}

export function isWanted(hook: Hook, filter: HookFilter): boolean {
  const wanted = filter.text.trim().toLowerCase();
  const said = `${hook.name} ${hook.matcher} ${hook.if_expr} ${hook.id}`.toLowerCase();
  return (
    (wanted === "" || said.includes(wanted)) &&
    (filter.event === "" || hook.event === filter.event) &&
    (filter.handler === "" || hook.handler_type === filter.handler) &&
    (filter.state === "" || stateOf(hook) === filter.state)
  );
}

/** The same for a hook of the configuration, whose family stands for a handler. */
export function isWantedConfigured(hook: ConfiguredHook, filter: HookFilter): boolean {
  const wanted = filter.text.trim().toLowerCase();
  return (
    (wanted === "" || `${hook.name} ${hook.matcher}`.toLowerCase().includes(wanted)) &&
    (filter.event === "" || hook.event === filter.event) &&
    (filter.handler === "" || hook.family === filter.handler) &&
    (filter.state === "" || filter.state === (hook.state === "disabled" ? "off" : "on"))
  );
}
