import { expect, test } from "vitest";

import type { Approval, Hook } from "../wire/types.ts";
import { exactly, exception, literal, refusalBefore } from "./exception.ts";

const HOOK: Hook = {
  id: "1", tenant_id: "t", agent_ids: [], event: "pre_tool_use", handler_type: "script", scope: "tenant", name: "no-force-push", config: {}, matcher: "^exec$", if_expr: "", timeout_ms: 5000, on_timeout: "block", priority: 7, enabled: true,
  version: 1, source: "user", may_rewrite: false, breaker: "all", on_trip: "block", tripped_at: null, disabled_reason: "", metadata: {}, created_by: null, created_at: "2026-01-01T00:00:00Z", updated_at: "2026-01-01T00:00:00Z",
};

test("values are read back as they are", () => {
  expect(literal({ a: [1, true, null, "x\"y\n"], b: {} })).toBe('{"a": [1, true, null, "x\\"y\\n"], "b": {}}');
  expect(exactly("exec", { command: "ls" })).toBe('tool_name == "exec" && tool_input == {"command": "ls"}');
});

test("one call is asked about, by a rule that names the one that refuses it", () => {
  const asks = exception(HOOK, { tool: "exec", input: { command: "ls" }, turnId: "t1", because: "by people only" }, "why");
  expect([asks.if_expr, asks.scope, asks.priority, asks.name, asks.metadata]).toEqual(['tool_name == "exec" && tool_input == {"command": "ls"}', "tenant", 7, "ask instead of no-force-push", { exception_of: "1", refused_turn: "t1", refused_because: "by people only" }]);
});

test("whoever is asked learns of the refusal that the exception was made for", () => {
  const made = (command: string, turnId: string): Hook => ({ ...HOOK, ...exception(HOOK, { tool: "exec", input: { command }, turnId, because: "by people only" }, "why"), id: turnId }) as Hook;
  const asks = (command: string, by = "ask instead of no-force-push") => ({ by, tool: "exec", arguments: { command } }) as unknown as Approval;
  const [one, other] = [made("ls", "t1"), made("rm", "t2")];
  expect(refusalBefore(asks("rm"), [HOOK, one, other])).toEqual({ hookId: "1", turnId: "t2", because: "by people only" });
  expect(refusalBefore(asks("cat"), [HOOK, one, other])).toBeUndefined();
  expect(refusalBefore(asks("ls", "no-force-push"), [HOOK, one])).toBeUndefined();
});
