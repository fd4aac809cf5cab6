import { expect, test } from "vitest";

import type { Hook } from "../wire/types.ts";
import { MASK } from "./bounds.ts";
import { compared, exported, type Outcome, records } from "./exchange.ts";

const NAMES = [{ id: "main", uuid: "0193a5b0-7000-7000-8000-000000000001" }];
const HOOK = {
  id: "h",
  name: "guard",
  event: "pre_tool_use",
  handler_type: "script",
  scope: "agent",
  agent_ids: ["0193a5b0-7000-7000-8000-000000000001"],
  config: { source: "a" },
  matcher: "^exec$",
  if_expr: "",
  priority: 3,
  timeout_ms: 5_000,
  on_timeout: "block",
  enabled: true,
  may_rewrite: false,
  breaker: "all",
  on_trip: "block",
  source: "user",
  version: 4,
} as unknown as Hook;
const SHIPPED = { ...HOOK, id: "s", name: "shipped", source: "builtin" } as Hook;
const RECORD = { name: "guard", event: "pre_tool_use", handler_type: "script", scope: "agent", agent_ids: ["main"], config: { source: "a" } };

const outcome = (record: unknown, hooks: readonly Hook[] = [HOOK, SHIPPED]): Outcome | undefined => compared([record], hooks, NAMES)[0]?.outcome;
const refused = (why: string, text: string) => ({ is: "refused", refusal: { why, text } });

test("what is exported is read again as the same", () => {
  const file = exported([HOOK, SHIPPED, { ...HOOK, config_hidden: true } as Hook], NAMES);
  expect(JSON.parse(file)).toHaveLength(1);
  expect(file).toContain('"main"');
  expect(compared(records(file), [HOOK], NAMES).map((line) => line.outcome)).toEqual([{ is: "same" }]);
});

test.each([
  ["the same, in another order", { scope: RECORD.scope, config: RECORD.config, agent_ids: ["main"], handler_type: "script", event: "pre_tool_use", name: "guard" }, { is: "same" }],
  ["a member that is silent stays", { ...RECORD, priority: 3 }, { is: "same" }],
  ["another setting", { ...RECORD, priority: 9, matcher: "^exec$" }, { is: "changed", hook: HOOK, updates: { priority: 9 }, what: ["priority"] }],
  ["another handler", { ...RECORD, handler_type: "http", config: { url: "https://a.example" } }, { is: "changed", hook: HOOK, updates: { handler_type: "http", config: { url: "https://a.example" } }, what: ["handler_type", "config"] }],
  ["another event is another hook", { ...RECORD, event: "stop" }, { is: "added", input: { ...RECORD, event: "stop", agent_ids: HOOK.agent_ids } }],
  ["without a name it is new", { ...RECORD, name: undefined, agent_ids: undefined, scope: "tenant" }, { is: "added", input: { ...RECORD, name: undefined, agent_ids: undefined, scope: "tenant" } }],
  ["no object", 7, refused("notARecord", "7")],
  ["members are missing", { name: "x", scope: "tenant" }, refused("missing", "event, handler_type, config")],
  ["a strange event", { ...RECORD, event: "before_tea" }, refused("unknown", 'event: "before_tea"')],
  ["a secret that is not there", { ...RECORD, name: "new", config: { url: "https://a.example", signing_secret: MASK } }, refused("secret", "new")],
  ["what is shipped", { ...RECORD, name: "shipped", priority: 1 }, refused("readOnly", "shipped")],
])("%s", (_, record, expected) => {
  expect(outcome(record)).toEqual(expected);
});

test("of two hooks that it could be, it is none", () => {
  expect(outcome(RECORD, [HOOK, { ...HOOK, id: "other" } as Hook])).toEqual(refused("several", "guard"));
});

test("one record is a file, too; what is no JSON is not", () => {
  expect(records("{}")).toEqual([{}]);
  expect(() => records("[[hook]]\n")).toThrow();
});
