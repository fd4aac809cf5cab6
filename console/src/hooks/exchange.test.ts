import { expect, test } from "vitest";

import type { Hook } from "../wire/types.ts";
import { differenceOf, exported, linesOf, plain, records } from "./exchange.ts";

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
  metadata: {},
  source: "user",
  version: 4,
} as unknown as Hook;
const SHIPPED = { ...HOOK, id: "s", name: "shipped", source: "builtin" } as Hook;
const RECORD = { name: "guard", event: "pre_tool_use", handler_type: "script", scope: "agent", agent_ids: ["main"], config: { source: "a" } };

const of = (record: unknown) => linesOf([record], NAMES)[0]?.of;
const refused = (why: string, text: string) => ({ is: "refused", refusal: { why, text } });

test("what is exported is a record of the same hook, with the names of its agents; what is shipped or hidden is not there", () => {
  const file = exported([HOOK, SHIPPED, { ...HOOK, config_hidden: true } as Hook], NAMES);
  const settings = { matcher: "^exec$", if_expr: "", priority: 3, timeout_ms: 5_000, on_timeout: "block", enabled: true, may_rewrite: false, breaker: "all", on_trip: "block" };
  expect(records(file)).toEqual([{ ...RECORD, ...settings }]);
  expect(linesOf(records(file), NAMES)).toEqual([{ number: 1, name: "guard", event: "pre_tool_use", of: { is: "record", input: { ...RECORD, ...settings, agent_ids: HOOK.agent_ids } } }]);
});

test("the metadata of a hook is exported, and comes back", () => {
  const metadata = { ticket: "OPS-7", exception_of: "0193a5b0-7000-7000-8000-000000000002" };
  const [record] = records(exported([{ ...HOOK, metadata: { ...metadata, file: "rules.toml", folder: "rules", team: { rule: "r" } } }], NAMES));
  // From which file a hook came is not said of its copy.
  expect((record as { metadata: unknown }).metadata).toEqual(metadata);
  expect(of(record)).toMatchObject({ input: { metadata } });
});

test.each([
  ["an agent that nobody knows stays as it is", { ...RECORD, agent_ids: ["other"] }, { is: "record", input: { ...RECORD, agent_ids: ["other"] } }],
  ["no object", 7, refused("notARecord", "7")],
  ["members are missing", { name: "x", scope: "tenant" }, refused("missing", "event, handler_type, config")],
  ["a strange event", { ...RECORD, event: "before_tea" }, refused("unknown", 'event: "before_tea"')],
])("%s", (_, record, expected) => {
  expect(of(record)).toEqual(expected);
});

test("one record is a file, too; what is no JSON is not", () => {
  expect(records("{}")).toEqual([{}]);
  expect(() => records("[[hook]]\n")).toThrow();
});

test.each([
  ["priority is 0, not 5", { path: "priority", here: "0", file: "5" }],
  ['matcher is "^a, b$", not "^c$"', { path: "matcher", here: '"^a, b$"', file: '"^c$"' }],
  ["config.url is absent, not \"https://a\"", { path: "config.url", here: "absent", file: '"https://a"' }],
  ["another secret in config.headers", undefined],
])("a difference: %s", (said, parts) => {
  expect(differenceOf(said)).toEqual(parts);
});

test.each([
  ["hook: command handler not allowed: hook.command_disabled_standard", "command handler not allowed"],
  ["invalid request: missing config payload", "missing config payload"],
  ["matcher: unclosed group", "matcher: unclosed group"],
])("a refusal: %s", (said, words) => {
  expect(plain(said)).toBe(words);
});
