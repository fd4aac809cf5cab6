import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { type Draft, EMPTY, toRecord } from "./draft.ts";
import { atOtherEvent } from "./moved.ts";
import { fromTemplate } from "./templates.ts";

const PUSHES = fromTemplate("forcePush", en);
const KEYS = fromTemplate("keys", en);

test("what a template wrote goes with its event, and comes back with it", () => {
  const moved = atOtherEvent(PUSHES, PUSHES, "user_prompt_submit");
  expect(moved).toEqual({ ...PUSHES, event: "user_prompt_submit", name: "", matcher: "", source: EMPTY.source });
  expect(atOtherEvent(moved, PUSHES, "session_start")).toEqual({ ...moved, event: "session_start", onTimeout: "allow", onTrip: "allow" });
  expect(atOtherEvent(moved, PUSHES, "pre_tool_use")).toEqual(PUSHES);
});

test("what a template allowed is not allowed elsewhere", () => {
  expect(toRecord(atOtherEvent(KEYS, KEYS, "pre_tool_use")).may_rewrite).toBe(false);
});

test.each<[string, Partial<Draft>]>([
  ["a name", { name: "mine" }],
  ["a matcher", { matcher: "^write_file$" }],
  ["a condition", { condition: "depth == 0" }],
  ["a script", { source: "function handle() { return { decision: 'block' }; }" }],
])("%s that somebody typed stays, there and back", (_, typed) => {
  const there = atOtherEvent({ ...PUSHES, ...typed }, PUSHES, "user_prompt_submit");
  expect(there).toEqual({ ...PUSHES, event: "user_prompt_submit", name: "", matcher: "", source: EMPTY.source, ...typed });
  expect(atOtherEvent(there, PUSHES, "pre_tool_use")).toEqual({ ...PUSHES, ...typed });
});

test("what somebody types at another event stays at the event of the template", () => {
  const there = { ...atOtherEvent(PUSHES, PUSHES, "stop"), name: "mine" };
  expect(atOtherEvent(there, PUSHES, "pre_tool_use").name).toBe("mine");
});

test("a form that began empty stays as it is, and so does one whose event does not change", () => {
  expect(atOtherEvent(EMPTY, EMPTY, "user_prompt_submit")).toEqual({ ...EMPTY, event: "user_prompt_submit" });
  expect(atOtherEvent({ ...PUSHES, name: "" }, PUSHES, "pre_tool_use").name).toBe("");
});

test("another handler takes nothing of a text along", () => {
  expect(toRecord({ ...PUSHES, handler: "prompt", template: "Block it." }).config).toEqual({ prompt_template: "Block it." });
  expect(toRecord({ ...PUSHES, handler: "http", url: "https://a.example" }).config).toEqual({ url: "https://a.example" });
});
