import { expect, test } from "vitest";

import { turns } from "../words/turns-en.ts";
import { deniedBy, endOf, faultLine, nameOf, noteOfPerson, whyBlocked } from "./said.ts";

test.each([
  ['Tool execution refused by a person (asked by hook "agents.main.ask")', ""],
  ['Tool execution refused by a person: use the other one (asked by hook "h")', "use the other one"],
  ["Tool execution refused by a person: not today", "not today"],
  ["forced pushes are done by people", undefined],
])("%s", (refusal, note) => {
  expect(noteOfPerson(refusal)).toBe(note);
});

test.each([
  ["it says so", "。", "."],
  ["it says so!", "。", ""],
  ["就是这样", "。", "。"],
  ["it says so", ".", "."],
] as const)("%s ends with what belongs to it", (said, stop, end) => {
  expect(endOf(said, stop)).toBe(end);
});

test("a model call says its model, what it cost and what it answered", () => {
  const span = { id: "model:1", kind: "model", parentId: null, name: "m", round: 1, startMs: 0, durationMs: 1, model: "openai/gpt-5-mini", content: "Done." } as const;
  const about = (more: object): string => nameOf({ id: "r", turnId: "t", of: { kind: "model", span: { ...span, ...more } }, sign: undefined, start: 0, took: 1, children: [] }, turns).about;
  expect(about({ costUsd: "0.001290000" })).toBe("openai/gpt-5-mini · $0.00129 · Done.");
  expect(about({})).toBe("openai/gpt-5-mini · Done.");
});

test("which hook refused a call is read from what the agent read", () => {
  expect(deniedBy('Tool execution denied by hook: no "x"\nat all (hook "guard")')).toEqual({ name: "guard", reason: 'no "x"\nat all' });
  expect(deniedBy('Tool execution denied by approval hook: no (hook "g")')).toEqual({ name: "g", reason: "no" });
  expect(deniedBy("something else")).toBeUndefined();
  expect(deniedBy("Hook blocked: pre_tool_use: gate: not: today")).toEqual({ name: "gate", reason: "not: today" });
  expect(deniedBy('Hook blocked: pre_tool_use: a b: hook "a b" failed: it is unavailable')).toEqual({ name: "a b", reason: "it is unavailable" });
  expect(deniedBy('Hook blocked: pre_tool_use: slow: hook "slow" timed out after 5000 ms')).toEqual({ name: "slow", reason: "timed out after 5000 ms" });
  expect(whyBlocked('hook "h" failed: it is unavailable', "h")).toBe("it is unavailable");
  expect(['Tool execution denied by hook: no (hook "g")', "Tool execution refused by a person: later", "something else"].map((one) => whyBlocked(one))).toEqual(["no", "later", "something else"]);
});

test.each([
  [{ fault: "unavailable", faultDetail: "is unavailable", cause: 'ssrf: resolve "a.invalid"' }, 'unavailable: ssrf: resolve "a.invalid"'],
  [{ fault: "timed_out", faultDetail: "timed out after 5000 ms" }, "timed out after 5000 ms"],
  [{ fault: "bad_exit", faultDetail: "exited with status 3", cause: "no rules" }, "bad exit code: exited with status 3: no rules"],
] as const)("a fault is said once: %j", (hook, line) => {
  expect(faultLine(hook, turns.faults[hook.fault], ": ")).toBe(line);
});
