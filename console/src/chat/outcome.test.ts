import { expect, test } from "vitest";

import type { Approval } from "../wire/types.ts";
import { outcomeOf } from "./outcome.ts";

const answered = { state: "used" } as unknown as Approval;

test.each([
  ["a hook's answer in the tool's place", { result: "a", isError: false, byHook: true }, ["allow", "byHook"]],
  ["a tool that ran", { result: "a", isError: false }, ["allow", "ran"]],
  ["a call that was approved and failed", { result: "a", isError: true, answered }, ["error", "approvedFailed"]],
  ["a call that failed", { result: "a", isError: true }, ["error", "failed"]],
  ["a call that waits for a person", { held: "waits" as const }, ["ask", "waits"]],
  ["a call of which nobody knows whether it is the one that waits", { held: "unknown" as const }, ["off", "called"]],
  ["a call of the history", { result: "a" }, ["off", "called"]],
  ["a call that runs", {}, ["off", "runs"]],
])("%s", (_, item, outcome) => {
  expect(outcomeOf(item)).toEqual(outcome);
});
