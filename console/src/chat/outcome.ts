import type { SignKind } from "../ui/sign.tsx";
import type { CallItem } from "./calls.ts";

/** What came of a call, each with a word of its own. */
export type Outcome = "blocked" | "failed" | "approvedFailed" | "byHook" | "ran" | "waits" | "called" | "runs";

/** The sign and the word for what came of a call. Of a call that was read from the history nobody knows whether it ran. Pure. */
export function outcomeOf(item: Pick<CallItem, "blocked" | "isError" | "byHook" | "result" | "held" | "answered">): readonly [SignKind, Outcome] {
  if (item.blocked !== undefined) {
    return ["block", "blocked"];
  }
  if (item.byHook === true) {
    return [item.isError === true ? "error" : "allow", "byHook"];
  }
  if (item.isError !== undefined) {
    return item.isError ? ["error", item.answered === undefined ? "failed" : "approvedFailed"] : ["allow", "ran"];
  }
  if (item.result !== undefined || item.held === "unknown") {
    return ["off", "called"];
  }
  return item.held === "waits" ? ["ask", "waits"] : ["off", "runs"];
}
