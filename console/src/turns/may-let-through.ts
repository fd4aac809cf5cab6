/** Whether a call that a hook refused may be let through once, here and by whom asks. Pure. */

import type { Hook, TurnHook, TurnLine, TurnSpan } from "../wire/types.ts";

/** Why it may not: each has a sentence of its own. */
export type Hindrance = "fault" | "configuration" | "gone" | "role" | "file" | "shipped" | "global" | "event" | "input" | "subAgent" | "other";

/** Whether it is about a call that `hook` refused at all. */
export const isRefusal = (hook: TurnHook, span: TurnSpan): boolean => hook.verdict === "deny" && span.tool !== undefined && span.toolCallId !== undefined;

interface Asking {
  readonly isAdmin: boolean;
  readonly isMaster: boolean;
  /** Whether the conversation is somebody else's. */
  readonly isOthers: boolean;
}

/** What stands in the way before the rule is known. */
export function hindrance(hook: TurnHook, span: TurnSpan, turn: Pick<TurnLine, "subAgent">, { isAdmin, isOthers }: Asking): Hindrance | undefined {
  // Nobody decided anything about the call: a person would be asked, and it would fail all the same.
  if (hook.fault !== undefined || !hook.ran) {
    return "fault";
  }
  if (typeof hook.execution?.hookId !== "string") {
    // An execution outlives its rule; hooks of the configuration have none.
    return hook.execution === undefined ? "configuration" : "gone";
  }
  if (!isAdmin) {
    return "role";
  }
  if (turn.subAgent) {
    return "subAgent";
  }
  if (isOthers) {
    return "other";
  }
  return span.call?.arguments === undefined ? "input" : undefined;
}

/** What stands in the way in the rule that refused. */
export function hindranceOf(rule: Pick<Hook, "event" | "source" | "metadata" | "scope">, { isMaster }: Pick<Asking, "isMaster">): Hindrance | undefined {
  if (typeof rule.metadata["file"] === "string") {
    return "file";
  }
  if (rule.source !== "user") {
    return "shipped";
  }
  if (rule.event !== "pre_tool_use") {
    return "event";
  }
  return rule.scope === "global" && !isMaster ? "global" : undefined;
}
