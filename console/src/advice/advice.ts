import { trippedSince } from "../hooks/state.ts";
import type { Execution, Hook, HookTestResult } from "../wire/types.ts";

/** The causes of trouble that have a message of their own: what happened, why, and what to do. */
export type Cause = "noUrl" | "port" | "unresolved" | "ssrf" | "freeText" | "tripped" | "edition" | "cap" | "budget" | "required" | "notJson" | "late";

/** By which texts of the server a cause is known. */
export const PATTERNS = [
  // Why an address is not called: it is none, its port is not one of those allowed, nobody knows its host, or it is inside.
  ["noUrl", /ssrf: (empty host|parse url|scheme |credentials in url)/],
  ["port", /ssrf: port \d+ not allowed/],
  ["unresolved", /ssrf: (resolve |\\?"[^"]*" resolved to no addresses)/],
  ["ssrf", /ssrf|loopback|private address/i],
  ["freeText", /evaluator_(no_tool_call|empty_response|wrong_tool|args_parse_error|invalid_decision)/],
  ["cap", /max_invocations_per_turn \(\d+\) reached/],
  ["budget", /tenant budget exceeded/],
  ["edition", /command_disabled_standard/],
  ["required", /handler_type, event, and scope are required/],
  ["tripped", /circuit breaker/],
] as const satisfies readonly (readonly [Cause, RegExp])[];

/** The cause that a text of the server names. Pure. */
export function causeOf(text: string | null | undefined): Cause | undefined {
  return PATTERNS.find(([, pattern]) => pattern.test(text ?? ""))?.[0];
}

/** Why a test came out as it did. */
export function causeOfTest(result: HookTestResult): Cause | undefined {
  if (result.nonJson === true) {
    return "notJson";
  }
  return causeOf(result.error) ?? causeOf(result.reason) ?? (result.decision === "timeout" ? "late" : undefined);
}

/** Why a hook is off. */
export function causeOfState(hook: Pick<Hook, "tripped_at" | "disabled_reason"> & Partial<Pick<Hook, "trips">>): Cause | undefined {
  if (trippedSince(hook) !== null) {
    return "tripped";
  }
  return hook.disabled_reason === "edition" ? "edition" : undefined;
}

/** Why an execution ended as it did. */
export function causeOfExecution(row: Pick<Execution, "error" | "reason" | "decision" | "metadata">): Cause | undefined {
  if (row.metadata["non_json"] === true) {
    return "notJson";
  }
  return causeOf(row.error) ?? causeOf(row.reason) ?? (row.decision === "timeout" ? "late" : undefined);
}
