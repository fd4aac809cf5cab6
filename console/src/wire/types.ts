/** What the gateway sends and takes: generated from its own types. What stands here is only what pages do with them. */

import type { CallerRole, CheckpointName, Decision, FaultWord, HandlerType, HookEvent, HookScope, Methods } from "../../../clients/typescript/src/protocol.generated.ts";

export type * from "../../../clients/typescript/src/protocol.generated.ts";

/** An object of which nobody here knows more. */
export type JsonObject = { readonly [member: string]: unknown };

export type Params<M extends keyof Methods> = Methods[M]["params"];
export type Payload<M extends keyof Methods> = Methods[M]["payload"];

/** Every member of `Union`, in the order in which it is offered; one that is missing breaks the build. */
const all =
  <Union extends string>() =>
  <const List extends readonly Union[]>(...list: List & ([Union] extends [List[number]] ? unknown : never)): List =>
    list;

export const EVENTS = all<HookEvent>()("session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use", "subagent_start", "subagent_stop", "stop");
/** Every checkpoint, in the order of a turn. */
export const CHECKPOINTS = all<CheckpointName>()(
  "session_start", "user_prompt_submit", "after_user_input", "before_planning", "before_each_agent", "before_first_agent", "before_llm", "after_llm", "before_tool",
  "pre_tool_use", "approve_tool", "after_tool", "post_tool_use", "after_tool_call", "subagent_start", "subagent_stop", "stop", "runtime",
);
/** The events at which a hook decides; at the others it only looks. */
export const GATES: readonly CheckpointName[] = ["user_prompt_submit", "pre_tool_use", "subagent_start"];
export const HANDLERS = all<HandlerType>()("command", "http", "prompt", "script");
export const SCOPES = all<HookScope>()("tenant", "agent", "global");
/** The ways in which a hook fails. */
export const FAULTS = all<FaultWord>()("timed_out", "cannot_start", "killed", "bad_exit", "unreadable", "too_large", "protocol_error", "panicked", "cancelled", "condition_failed", "unavailable");
export const DECISIONS = all<Decision>()("allow", "block", "ask", "error", "timeout");
/** From the one that may least to the one that may most. */
export const ROLES = all<CallerRole>()("viewer", "operator", "admin", "owner");

/** Whether hooks of records are asked at it. */
export const isHookEvent = (name: string): name is HookEvent => (EVENTS as readonly string[]).includes(name);
