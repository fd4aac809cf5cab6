import { EVENTS, HANDLERS, type Hook, type HookInput, type HookUpdates, type JsonObject, SCOPES } from "../wire/types.ts";
import { agentNames } from "./agent-names.ts";

/** Names of agents and their ids: files have names, since ids are of one host. */
export type Names = readonly { readonly id: string; readonly uuid: string }[];

/** The settings that a record has, as they stand in a file. */
const SETTINGS: readonly (keyof HookUpdates & keyof Hook)[] = ["matcher", "if_expr", "priority", "timeout_ms", "on_timeout", "enabled", "may_rewrite", "breaker", "on_trip"];

const isObject = (value: unknown): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether a hook can stand in a file: what is shipped comes with the program, and what is hidden is not there. */
export const isExported = (hook: Hook): boolean => hook.source === "user" && hook.config_hidden !== true;

/** Members of the metadata that say from which file or team a hook comes: one that is imported comes from none, and could not be changed with them. */
const OF_ITS_FILE: readonly string[] = ["file", "folder", "team"];

function recordOf(hook: Hook, names: Names): JsonObject {
  const agents = agentNames(hook.agent_ids, names);
  const metadata = Object.fromEntries(Object.entries(hook.metadata).filter(([name]) => !OF_ITS_FILE.includes(name)));
  return {
    name: hook.name,
    event: hook.event,
    handler_type: hook.handler_type,
    scope: hook.scope,
    ...(agents.length === 0 ? {} : { agent_ids: agents }),
    ...Object.fromEntries(SETTINGS.map((name) => [name, hook[name]])),
    config: hook.config,
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  };
}

/** Hooks as a file that `pintle hooks add` and this page read. Secrets are not in it: a mask stands in their place. Pure. */
export const exported = (hooks: readonly Hook[], names: Names): string => `${JSON.stringify(hooks.filter(isExported).map((hook) => recordOf(hook, names)), null, 2)}\n`;

/** In what a record of a file is different from the hook that is there. */
export interface Difference {
  readonly path: string;
  readonly here: string;
  readonly file: string;
}

/** What the server says of a difference, in its parts; nothing where it is about a secret. Pure. */
export function differenceOf(said: string): Difference | undefined {
  const found = /^(\S+) is ([\s\S]*?), not ([\s\S]*)$/.exec(said);
  const [, path, here, file] = found ?? [];
  return path === undefined || here === undefined || file === undefined ? undefined : { path, here, file };
}

/** A refusal without the words that programs read: where it comes from, and its code. Pure. */
export const plain = (refusal: string): string => refusal.replace(/^(?:hook|invalid request|invalid config): /g, "").replace(/: hook\.\w+$/, "");

/** Why a record of a file cannot be taken; `text` is what it is about. */
export interface Refusal {
  readonly why: "notARecord" | "missing" | "unknown";
  readonly text: string;
}

/** A record of a file, with its number from 1 on: as the server takes it, or why it cannot be asked about it. */
export interface Line {
  readonly number: number;
  readonly name: string;
  readonly event: string;
  readonly of: { readonly is: "record"; readonly input: HookInput } | { readonly is: "refused"; readonly refusal: Refusal };
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

/** The record with the ids of its agents, whose names it has. */
function inputOf(record: JsonObject, names: Names): HookInput {
  const listed = Array.isArray(record["agent_ids"]) ? record["agent_ids"] : [];
  const agents = listed.map((agent: unknown) => names.find(({ id }) => id === agent)?.uuid ?? agent);
  return { ...record, ...(listed.length === 0 ? {} : { agent_ids: agents }) } as unknown as HookInput;
}

/** The records of a file, each by itself. Pure. */
export function linesOf(all: readonly unknown[], names: Names): readonly Line[] {
  return all.map((record, at) => {
    const about = isObject(record) ? record : {};
    const refusal = refusalOf(record);
    return { number: at + 1, name: text(about["name"]), event: text(about["event"]), of: refusal === undefined ? { is: "record", input: inputOf(about, names) } : { is: "refused", refusal } };
  });
}
