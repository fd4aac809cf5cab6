/** A refused call that a person shall decide about: what changes in the rules for it. Pure. */

import { EXCEPTION_OF, nameInstead } from "../hooks/state.ts";
import type { Approval, Hook, HookInput, JsonObject } from "../wire/types.ts";

/** A text as CEL reads it. */
const text = (value: string): string => JSON.stringify(value).replaceAll(/[\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16)}`);

/** A value as CEL reads it. */
export function literal(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map(literal).join(", ")}]`;
  }
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value)
      .map(([name, member]) => `${text(name)}: ${literal(member)}`)
      .join(", ")}}`;
  }
  return typeof value === "string" ? text(value) : JSON.stringify(value);
}

/** The condition that holds for exactly this call. */
export const exactly = (tool: string, input: unknown): string => `tool_name == ${text(tool)} && tool_input == ${literal(input)}`;

/** The members of an exception's metadata that say in which turn the call was refused, and why: whoever is asked has to know. */
const REFUSED_TURN = "refused_turn";
const REFUSED_BECAUSE = "refused_because";

/** Longer reasons are in the turn. */
const MAX_REASON = 500;

/** A call that was refused. */
export interface RefusedCall {
  readonly tool: string;
  readonly input: JsonObject;
  readonly turnId: string;
  readonly because: string;
}

/** The rule that asks a person about this call only, where `hook` refuses. It names `hook`, which refuses the call again as soon as this rule does not act; every other call it refuses as before. */
export const exception = (hook: Hook, { tool, input, turnId, because }: RefusedCall, reason: string): HookInput => ({
  name: nameInstead(hook),
  event: "pre_tool_use",
  handler_type: "script",
  scope: hook.scope,
  agent_ids: hook.agent_ids,
  priority: hook.priority,
  if_expr: exactly(tool, input),
  config: { source: `function handle() {\n  return { decision: "ask", reason: ${JSON.stringify(reason)} };\n}\n` },
  metadata: { [EXCEPTION_OF]: hook.id, [REFUSED_TURN]: turnId, ...(because === "" ? {} : { [REFUSED_BECAUSE]: because.slice(0, MAX_REASON) }) },
});

/** What an exception says of the refusal that it was made for. */
export interface Refusal {
  /** The rule that refused. */
  readonly hookId: string;
  readonly turnId: string | undefined;
  readonly because: string;
}

const said = (value: unknown): string => (typeof value === "string" ? value : "");

/** The refusal before a question, where an exception asks. Of several with its name it is the one about just this call. */
export function refusalBefore({ by, tool, arguments: input }: Pick<Approval, "by" | "tool" | "arguments">, hooks: readonly Hook[]): Refusal | undefined {
  const named = hooks.filter(({ name, metadata }) => name === by && said(metadata[EXCEPTION_OF]) !== "");
  const asks = named.find(({ if_expr: condition }) => condition === exactly(tool, input)) ?? (named.length === 1 ? named[0] : undefined);
  if (asks === undefined) {
    return undefined;
  }
  const { metadata } = asks;
  return { hookId: said(metadata[EXCEPTION_OF]), turnId: said(metadata[REFUSED_TURN]) || undefined, because: said(metadata[REFUSED_BECAUSE]) };
}
