import type { ConfiguredHook, GuardState, Hook, HookCountsAt } from "../wire/types.ts";

export { labelsOf } from "../wire/labels.ts";

/** Whether a hook acts, and if not, why. */
export type HookState = "on" | "off" | "tripped" | "edition" | "agents";

/** Since when the breaker of a hook is open. To owners one for everybody is shown as it is, with the tenants in which its breaker is
 * open: there it does not act. Pure. */
export const trippedSince = ({ tripped_at: since, trips = [] }: Pick<Hook, "tripped_at"> & Partial<Pick<Hook, "trips">>): string | null => since ?? trips[0]?.tripped_at ?? null;

/** The tenants in which the breaker of a hook for everybody is open, as far as they are shown. Pure. */
export const tripsOf = ({ trips = [] }: Partial<Pick<Hook, "trips">>): readonly string[] => trips.map(({ tenant_id: tenant }) => tenant);

export function stateOf(hook: Pick<Hook, "enabled" | "tripped_at" | "disabled_reason"> & Partial<Pick<Hook, "trips">>): HookState {
  if (trippedSince(hook) !== null) {
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

/** Whether a hook of the configuration acts: one that is not proven is asked all the same, and so is one that is broken. */
function stateOfConfigured(standing: GuardState): HookState {
  if (standing === "tripped") {
    return "tripped";
  }
  return standing === "disabled" ? "off" : "on";
}

/** How many hooks there are, and how many of them are on. */
export interface Counted {
  readonly all: number;
  readonly on: number;
  readonly tripped: number;
}

/** Hooks as every page counts them: rules and the hooks of the configuration, each once at however many events it is asked;
 * texts of skills decide nothing. Pure. */
export function counted(rules: readonly Hook[], configured: readonly ConfiguredHook[]): Counted {
  const states = new Map(configured.filter(({ family }) => family !== "skill").map(({ name, state }) => [name, state]));
  const stands = [...rules.map(stateOf), ...[...states.values()].map(stateOfConfigured)];
  return { all: stands.length, on: stands.filter((one) => one === "on").length, tripped: stands.filter((one) => one === "tripped").length };
}

/** Whether nobody has put a hook here yet: what is shipped stands here from the beginning, and what an agent asks about is a setting of it. Pure. */
export const lacksOwn = (rules: readonly Pick<Hook, "source">[], configured: readonly Pick<ConfiguredHook, "family">[]): boolean =>
  rules.every(({ source }) => source === "builtin") && configured.every(({ family }) => family !== "process" && family !== "command");

/** The rules that hold in a tenant, as they count there: an owner's list has every tenant's. Pure. */
export const ofTenant = (rules: readonly Hook[], tenant: string): readonly Hook[] =>
  rules.filter((hook) => hook.scope === "global" || hook.tenant_id === tenant).map((hook) => (hook.trips === undefined ? hook : { ...hook, trips: hook.trips.filter((trip) => trip.tenant_id === tenant) }));

/** Whose a rule is; one that holds for everybody is nobody's. Pure. */
export const homeOf = ({ scope, tenant_id: tenant }: Pick<Hook, "scope" | "tenant_id">): string | undefined => (scope === "global" ? undefined : tenant);

/** The member of a rule's metadata that names the rule, by its id, whose calls it asks about instead. */
export const EXCEPTION_OF = "exception_of";

/** The rules that `hook` got by “Let it through once…”: they ask about single calls that it refuses. Pure. */
export const asksInstead = (hook: Pick<Hook, "id">, rules: readonly Hook[]): readonly Hook[] => rules.filter(({ metadata }) => metadata[EXCEPTION_OF] === hook.id);

/** The rule that refuses the calls again that `hook` asks about, once `hook` does not act. Pure. */
export const refusesAgain = (hook: Pick<Hook, "metadata">, rules: readonly Hook[]): Hook | undefined => rules.find(({ id }) => id === hook.metadata[EXCEPTION_OF]);

/** What such a rule is called. */
export const nameInstead = (hook: Pick<Hook, "id" | "name">): string => `ask instead of ${hook.name || hook.id}`.slice(0, MAX_NAME);

const MAX_NAME = 255;

/** What hooks did lately, by the tenant where it is said, the checkpoint and the name. */
export type Lately = ReadonlyMap<string, HookCountsAt>;

const placeOf = (event: string, name: string, tenant = ""): string => `${tenant} ${event} ${name}`;

export const lately = (counts: readonly HookCountsAt[]): Lately => new Map(counts.map((one) => [placeOf(one.event, one.name, one.tenantId), one]));

/** What a hook did lately, in the tenant whose counts are meant: a rule without a name is known by its id. Of two rules with one name
 * at one event nobody can tell. */
export function didLately(all: Lately, hook: Pick<Hook, "event" | "name"> & Partial<Pick<Hook, "id">>, tenant?: string): HookCountsAt | undefined {
  return all.get(placeOf(hook.event, hook.name === "" ? (hook.id ?? "") : hook.name, tenant));
}

/** The hooks that somebody looks for. */
export interface HookFilter {
  readonly text: string;
  readonly event: string;
  readonly handler: string;
  readonly state: string;
}

/** The states that somebody may look for, of a rule: whether it is on, and if so whether that it works is proven. */
function statesOf(hook: Hook, standing: GuardState | undefined): readonly string[] {
  const state = stateOf(hook);
  return state === "on" ? [state, standing ?? "armed"] : [state];
}

/** `standing` is how a rule stands that is on and not proven to work. */
export function isWanted(hook: Hook, filter: HookFilter, standing?: GuardState): boolean {
  const wanted = filter.text.trim().toLowerCase();
  const said = `${hook.name} ${hook.matcher} ${hook.if_expr} ${hook.id}`.toLowerCase();
  return (
    (wanted === "" || said.includes(wanted)) &&
    (filter.event === "" || hook.event === filter.event) &&
    (filter.handler === "" || hook.handler_type === filter.handler) &&
    (filter.state === "" || statesOf(hook, standing).includes(filter.state))
  );
}

/** The same of a hook of the configuration. */
function statesOfConfigured({ family, state: standing }: ConfiguredHook): readonly string[] {
  // No number counts the text of a skill: it decides nothing.
  if (family === "skill") {
    return [];
  }
  const state = stateOfConfigured(standing);
  return state === "on" ? [state, standing] : [state];
}

/** The same for a hook of the configuration, whose family stands for a handler. */
export function isWantedConfigured(hook: ConfiguredHook, filter: HookFilter): boolean {
  const wanted = filter.text.trim().toLowerCase();
  return (
    (wanted === "" || `${hook.name} ${hook.matcher}`.toLowerCase().includes(wanted)) &&
    (filter.event === "" || hook.event === filter.event) &&
    (filter.handler === "" || hook.family === filter.handler) &&
    (filter.state === "" || statesOfConfigured(hook).includes(filter.state))
  );
}
