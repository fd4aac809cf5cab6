import { type BreakerPolicy, type Fallback, GATES, type HandlerType, type Hook, type HookEvent, type HookInput, type HookScope, type HookUpdates, isHookEvent, type JsonObject } from "../wire/types.ts";
import { DEFAULT_TIMEOUT_MS, MASK } from "./bounds.ts";

/** A header of a request that a hook sends. */
export interface Header {
  readonly name: string;
  readonly value: string;
  readonly secret: boolean;
}

/** A hook as a form has it: everything at once, whatever its handler is, so that nothing typed is lost. */
export interface Draft {
  name: string;
  event: HookEvent;
  handler: HandlerType;
  scope: HookScope;
  agents: string[];
  matcher: string;
  condition: string;
  timeoutMs: string;
  onTimeout: Fallback;
  priority: string;
  enabled: boolean;
  mayRewrite: boolean;
  breaker: BreakerPolicy;
  onTrip: Fallback;
  command: string;
  variables: string;
  cwd: string;
  url: string;
  headers: Header[];
  strict: boolean;
  signingSecret: string;
  template: string;
  model: string;
  provider: string;
  invocations: string;
  ignoreInjection: boolean;
  source: string;
  /** A JSON object, as text; empty where there is none. */
  metadata: string;
}

const SOURCE = `function handle(event) {
  return { decision: "allow" };
}
`;

/** What a new hook begins with. */
export const EMPTY: Draft = {
  name: "",
  event: "pre_tool_use",
  handler: "http",
  scope: "tenant",
  agents: [],
  matcher: "",
  condition: "",
  timeoutMs: String(DEFAULT_TIMEOUT_MS),
  onTimeout: "block",
  priority: "0",
  enabled: true,
  mayRewrite: false,
  breaker: "all",
  onTrip: "block",
  command: "",
  variables: "",
  cwd: "",
  url: "",
  headers: [],
  strict: false,
  signingSecret: "",
  template: "",
  model: "",
  provider: "",
  invocations: "",
  ignoreInjection: false,
  source: SOURCE,
  metadata: "",
};

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const isObject = (value: unknown): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value);

/** Metadata as a form has it: none is an empty text. Pure. */
export const metadataText = (metadata: JsonObject): string => (Object.keys(metadata).length === 0 ? "" : JSON.stringify(metadata, null, 2));

/** The metadata that a text stands for; nothing where it is no JSON object. Pure. */
export function metadataOf(typed: string): JsonObject | undefined {
  try {
    const value: unknown = typed.trim() === "" ? {} : JSON.parse(typed);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A hook, to be changed. */
export function toDraft(hook: Hook): Draft {
  const { config } = hook;
  const secret = new Set((Array.isArray(config["secret_headers"]) ? config["secret_headers"] : []).map((name) => String(name).toLowerCase()));
  const headers = isObject(config["headers"]) ? Object.entries(config["headers"]) : [];
  const variables = Array.isArray(config["allowed_env_vars"]) ? config["allowed_env_vars"] : [];
  const invocations = config["max_invocations_per_turn"];
  return {
    ...EMPTY,
    name: hook.name,
    event: isHookEvent(hook.event) ? hook.event : EMPTY.event,
    handler: hook.handler_type,
    scope: hook.scope,
    agents: [...hook.agent_ids],
    matcher: hook.matcher,
    condition: hook.if_expr,
    timeoutMs: String(hook.timeout_ms),
    onTimeout: hook.on_timeout,
    priority: String(hook.priority),
    enabled: hook.enabled,
    mayRewrite: hook.may_rewrite,
    breaker: hook.breaker,
    onTrip: hook.on_trip,
    command: text(config["command"]),
    variables: variables.join(" "),
    cwd: text(config["cwd"]),
    url: text(config["url"]),
    headers: headers.map(([name, value]) => ({ name, value: text(value), secret: secret.has(name.toLowerCase()) })),
    strict: config["strict"] === true,
    signingSecret: text(config["signing_secret"]),
    template: text(config["prompt_template"]),
    model: text(config["model"]),
    provider: text(config["provider"]),
    invocations: invocations === undefined ? "" : String(invocations),
    ignoreInjection: config["on_injection"] === "ignore",
    source: hook.handler_type === "script" ? text(config["source"]) : SOURCE,
    metadata: metadataText(hook.metadata),
  };
}

/** Members without those that are empty. */
const filled = (members: Record<string, unknown>): JsonObject =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== "" && value !== false && !(Array.isArray(value) && value.length === 0)));

/** Whether a row of headers has a value, and no name: the value would be sent nowhere. A row without either is none. Pure. */
export const isNameless = (header: Header | undefined): boolean => header !== undefined && header.name.trim() === "" && header.value.trim() !== "";

/** The settings of the handler that is chosen. */
export function toConfig(draft: Draft): JsonObject {
  switch (draft.handler) {
    case "command":
      return filled({ command: draft.command, allowed_env_vars: draft.variables.split(/[\s,]+/).filter(Boolean), cwd: draft.cwd });
    case "http": {
      const headers = draft.headers.filter(({ name }) => name.trim() !== "");
      const named = Object.fromEntries(headers.map(({ name, value }) => [name.trim(), value]));
      return {
        ...filled({
          url: draft.url.trim(),
          secret_headers: headers.filter(({ secret }) => secret).map(({ name }) => name.trim()),
          strict: draft.strict,
          signing_secret: draft.signingSecret,
        }),
        ...(headers.length === 0 ? {} : { headers: named }),
      };
    }
    case "prompt":
      return filled({
        prompt_template: draft.template,
        model: draft.model.trim(),
        provider: draft.provider.trim(),
        max_invocations_per_turn: draft.invocations.trim() === "" ? "" : Number(draft.invocations),
        on_injection: draft.ignoreInjection ? "ignore" : "",
      });
    case "script":
      return { source: draft.source };
  }
}

/** The whole record. */
export function toRecord(draft: Draft): HookInput {
  return {
    name: draft.name.trim(),
    event: draft.event,
    handler_type: draft.handler,
    scope: draft.scope,
    agent_ids: draft.scope === "agent" ? draft.agents : [],
    config: toConfig(draft),
    matcher: draft.matcher,
    if_expr: draft.condition,
    timeout_ms: Number(draft.timeoutMs),
    on_timeout: draft.onTimeout,
    priority: Number(draft.priority),
    enabled: draft.enabled,
    may_rewrite: draft.mayRewrite,
    breaker: draft.breaker,
    on_trip: draft.onTrip,
    // A form with another text is not sent.
    metadata: metadataOf(draft.metadata) ?? {},
  };
}

/** What is different from `base`: what is sent, so that what others change meanwhile elsewhere stays. */
export function changes(base: Draft, draft: Draft): HookUpdates {
  const was = new Map(Object.entries(toRecord(base)));
  return Object.fromEntries(Object.entries(toRecord(draft)).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(was.get(name))));
}

/** Another event: what is said where nothing answers goes with its kind. */
export function atEvent(draft: Pick<Draft, "event" | "onTimeout" | "onTrip">, event: HookEvent): Pick<Draft, "onTimeout" | "onTrip"> {
  const isGate = (one: HookEvent): boolean => GATES.includes(one);
  if (isGate(draft.event) === isGate(event)) {
    return { onTimeout: draft.onTimeout, onTrip: draft.onTrip };
  }
  const fallback = isGate(event) ? "block" : "allow";
  return { onTimeout: fallback, onTrip: fallback };
}

/** Whether a value stands for a secret that the server keeps. */
export const isKept = (value: string): boolean => value === MASK;
