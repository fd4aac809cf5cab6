import type { ConfiguredHook, Hook, HookCountsAt } from "../wire/types.ts";

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

/** What hooks did lately, by the checkpoint and the name. */
export type Lately = ReadonlyMap<string, HookCountsAt>;

const placeOf = (event: string, name: string): string => `${event} ${name}`;

export const lately = (counts: readonly HookCountsAt[]): Lately => new Map(counts.map((one) => [placeOf(one.event, one.name), one]));

/** What a hook did lately: a rule without a name is known by its id. Of two rules with one name at one event nobody can tell. */
export function didLately(all: Lately, hook: Pick<Hook, "event" | "name"> & Partial<Pick<Hook, "id">>): HookCountsAt | undefined {
  return all.get(placeOf(hook.event, hook.name === "" ? (hook.id ?? "") : hook.name));
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
