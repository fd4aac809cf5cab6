import { expect, test } from "vitest";

import type { TurnHook, TurnSpan } from "../wire/types.ts";
import { quoted, testOf } from "./as-test.ts";

const hook = { name: "no-force-push", checkpoint: "pre_tool_use", verdict: "deny", reason: "no", execution: { hookId: "7" } } as unknown as TurnHook;
const span = (more: object): TurnSpan => ({ tool: "exec", call: { arguments: { command: "it's" } }, ...more }) as unknown as TurnSpan;

test("a checkpoint of a call is a line and a file about its tool", () => {
  const { line, name, text } = testOf(hook, span({}), "push it", [{ name: "no-force-push" }, { name: "other" }]) ?? {};
  expect(line).toBe(`pintle hooks test no-force-push --event pre_tool_use --tool exec --input '{"command":"it'\\''s"}'`);
  expect(name).toBe("no-force-push.test.json");
  expect(JSON.parse(text ?? "")).toEqual({ hook: "no-force-push", event: "pre_tool_use", sampleEvent: { toolName: "exec", toolInput: { command: "it's" } }, expected: { verdict: "deny", reason: "no" } });
});

test("where several rules have its name, a hook is known by its id", () => {
  const rules = [{ name: "no-force-push" }, { name: "no-force-push" }];
  expect(testOf(hook, span({}), null, rules)?.line).toContain("hooks test 7 --event");
  // One of the configuration has no id.
  expect(testOf({ ...hook, execution: undefined } as unknown as TurnHook, span({}), null, rules)?.line).toContain("hooks test no-force-push --event");
});

test("one of a message is about its text, and of arguments that are not kept there is none", () => {
  expect(testOf(hook, span({ tool: undefined, call: undefined }), "push it", [])?.line).toBe("pintle hooks test no-force-push --event pre_tool_use --prompt 'push it'");
  expect(testOf(hook, span({ tool: undefined, call: undefined }), null, [])).toBeUndefined();
  expect(testOf(hook, span({ call: undefined }), "push it", [])).toBeUndefined();
  expect(["a-b", "$(x)", ""].map(quoted)).toEqual(["a-b", "'$(x)'", "''"]);
});
