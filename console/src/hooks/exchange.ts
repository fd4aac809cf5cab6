import { EVENTS, HANDLERS, type Hook, type HookInput, type HookUpdates, type JsonObject, SCOPES } from "../wire/types.ts";
import { MASK } from "./bounds.ts";

/** Names of agents and their ids: files have names, since ids are of one host. */
export type Names = readonly { readonly id: string; readonly uuid: string }[];

/** The settings that a record has, as they stand in a file, and what stands for each where a file is silent. */
const SETTINGS: readonly (readonly [keyof HookUpdates & keyof Hook, unknown])[] = [
  ["matcher", ""],
  ["if_expr", ""],
  ["priority", 0],
  ["timeout_ms", 5_000],
  ["on_timeout", "block"],
  ["enabled", true],
  ["may_rewrite", false],
  ["breaker", "all"],
  ["on_trip", "block"],
];

const isObject = (value: unknown): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value);

/** JSON whose members are sorted: equal values are equal texts. */
function same(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (isObject(member) ? Object.fromEntries(Object.entries(member).sort(([one], [two]) => (one < two ? -1 : 1))) : member));
}

/** Whether a hook can stand in a file: what is shipped comes with the program, and what is hidden is not there. */
export const isExported = (hook: Hook): boolean => hook.source === "user" && hook.config_hidden !== true;

function recordOf(hook: Hook, names: Names): JsonObject {
  const agents = hook.agent_ids.map((id) => names.find(({ uuid }) => uuid === id)?.id ?? id);
  return {
    name: hook.name,
    event: hook.event,
    handler_type: hook.handler_type,
    scope: hook.scope,
    ...(agents.length === 0 ? {} : { agent_ids: agents }),
    ...Object.fromEntries(SETTINGS.map(([name]) => [name, hook[name]])),
    config: hook.config,
  };
}

/** Hooks as a file that `pintle hooks add` and this page read. Secrets are not in it: a mask stands in their place. Pure. */
export const exported = (hooks: readonly Hook[], names: Names): string => `${JSON.stringify(hooks.filter(isExported).map((hook) => recordOf(hook, names)), null, 2)}\n`;

/** Why a record of a file cannot be taken; `text` is what it is about. */
export interface Refusal {
  readonly why: "notARecord" | "missing" | "unknown" | "secret" | "several" | "readOnly";
  readonly text: string;
}

/** What comes of a record of a file. */
export type Outcome =
  | { readonly is: "added"; readonly input: HookInput }
  | { readonly is: "same" }
  | { readonly is: "changed"; readonly hook: Hook; readonly updates: HookUpdates; readonly what: readonly string[] }
  | { readonly is: "refused"; readonly refusal: Refusal };

/** A record of a file, with its number from 1 on. */
export interface Line {
  readonly number: number;
  readonly name: string;
  readonly event: string;
  readonly matcher: string;
  readonly condition: string;
  readonly outcome: Outcome;
}

/** The records of a file: one, or several. Throws what is wrong with it as JSON. Pure. */
export function records(text: string): readonly unknown[] {
  const whole: unknown = JSON.parse(text);
  return Array.isArray(whole) ? whole : [whole];
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

function refusalOf(record: unknown): Refusal | undefined {
  if (!isObject(record)) {
    return { why: "notARecord", text: JSON.stringify(record) };
  }
  const missing = (["event", "handler_type", "scope", "config"] as const).filter((name) => record[name] === undefined);
  if (missing.length > 0) {
    return { why: "missing", text: missing.join(", ") };
  }
  const strange = ([["event", EVENTS], ["handler_type", HANDLERS], ["scope", SCOPES]] as const).find(([name, known]) => !(known as readonly unknown[]).includes(record[name]));
  return strange === undefined ? undefined : { why: "unknown", text: `${strange[0]}: ${JSON.stringify(record[strange[0]])}` };
}

/** The values of a record that are different from those of a hook. */
function differences(hook: Hook, record: JsonObject, agents: readonly unknown[]): HookUpdates {
  const now: Record<string, unknown> = { handler_type: record["handler_type"], config: record["config"], agent_ids: agents, ...Object.fromEntries(SETTINGS.filter(([name]) => record[name] !== undefined).map(([name]) => [name, record[name]])) };
  return Object.fromEntries(Object.entries(now).filter(([name, value]) => same(value) !== same(hook[name as keyof Hook])));
}

function outcomeOf(record: unknown, hooks: readonly Hook[], names: Names): Outcome {
  const refusal = refusalOf(record);
  if (refusal !== undefined || !isObject(record)) {
    return { is: "refused", refusal: refusal ?? { why: "notARecord", text: "" } };
  }
  const listed = Array.isArray(record["agent_ids"]) ? record["agent_ids"] : [];
  const agents = listed.map((agent: unknown) => names.find(({ id }) => id === agent)?.uuid ?? agent);
  const there = hooks.filter((hook) => text(record["name"]) !== "" && hook.name === record["name"] && hook.event === record["event"] && hook.scope === record["scope"]);
  const [hook] = there;
  if (there.length > 1) {
    return { is: "refused", refusal: { why: "several", text: text(record["name"]) } };
  }
  if (hook === undefined) {
    return JSON.stringify(record["config"]).includes(MASK)
      ? { is: "refused", refusal: { why: "secret", text: text(record["name"]) } }
      : { is: "added", input: { ...record, ...(listed.length === 0 ? {} : { agent_ids: agents }) } as unknown as HookInput };
  }
  const updates = differences(hook, record, agents);
  const what = Object.keys(updates);
  if (what.length > 0 && !isExported(hook)) {
    return { is: "refused", refusal: { why: "readOnly", text: hook.name } };
  }
  return what.length === 0 ? { is: "same" } : { is: "changed", hook, updates, what };
}

/** What would come of the records of a file, beside the hooks that are there. Pure. */
export function compared(all: readonly unknown[], hooks: readonly Hook[], names: Names): readonly Line[] {
  return all.map((record, at) => {
    const about = isObject(record) ? record : {};
    return { number: at + 1, name: text(about["name"]), event: text(about["event"]), matcher: text(about["matcher"]), condition: text(about["if_expr"]), outcome: outcomeOf(record, hooks, names) };
  });
}
