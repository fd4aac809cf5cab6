/** A refused call that a person shall decide about: what changes in the rules for it. Pure. */

import { EXCEPTION_OF, nameInstead } from "../hooks/state.ts";
import type { Hook, HookInput } from "../wire/types.ts";

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

/** The rule that asks a person about this call only, where `hook` refuses. It names `hook`, which refuses the call again as soon as this rule does not act; every other call it refuses as before. */
export const exception = (hook: Hook, tool: string, input: unknown, reason: string): HookInput => ({
  name: nameInstead(hook),
  event: "pre_tool_use",
  handler_type: "script",
  scope: hook.scope,
  agent_ids: hook.agent_ids,
  priority: hook.priority,
  if_expr: exactly(tool, input),
  config: { source: `function handle() {\n  return { decision: "ask", reason: ${JSON.stringify(reason)} };\n}\n` },
  metadata: { [EXCEPTION_OF]: hook.id },
});
