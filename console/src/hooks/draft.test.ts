import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import type { Hook } from "../wire/types.ts";
import * as bounds from "./bounds.ts";
import { atEvent, changes, EMPTY, isNameless, metadataOf, toConfig, toDraft, toRecord } from "./draft.ts";

const HOOK: Hook = {
  id: "1",
  tenant_id: "t",
  agent_ids: [],
  event: "pre_tool_use",
  handler_type: "http",
  scope: "tenant",
  name: "n",
  config: { url: "https://a.example/x", headers: { Authorization: bounds.MASK, "X-Key": "k" }, secret_headers: ["x-key"], strict: true },
  matcher: "^exec$",
  if_expr: "",
  timeout_ms: 5000,
  on_timeout: "block",
  priority: 3,
  enabled: true,
  version: 2,
  source: "user",
  may_rewrite: false,
  breaker: "all",
  on_trip: "block",
  tripped_at: null,
  disabled_reason: "",
  metadata: {},
  created_by: null,
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:00Z",
};

test("a hook that is only looked at is not changed", () => {
  expect(changes(toDraft(HOOK), toDraft(HOOK))).toEqual({});
});

test("only what is different is sent, and a secret that is kept stays one", () => {
  const draft = { ...toDraft(HOOK), timeoutMs: "3000", strict: false };
  expect(changes(toDraft(HOOK), draft)).toEqual({
    timeout_ms: 3000,
    config: { url: "https://a.example/x", secret_headers: ["X-Key"], headers: { Authorization: bounds.MASK, "X-Key": "k" } },
  });
});

test("metadata survives a change of something else, and is changed and cleared as a text", () => {
  const hook = { ...HOOK, metadata: { exception_of: "h", tags: ["a", 1, null] } };
  expect(toRecord(toDraft(hook)).metadata).toEqual(hook.metadata);
  expect(changes(toDraft(hook), { ...toDraft(hook), priority: "7" })).toEqual({ priority: 7 });
  expect(changes(toDraft(hook), { ...toDraft(hook), metadata: '{"ticket":"OPS-7"}' })).toEqual({ metadata: { ticket: "OPS-7" } });
  expect(changes(toDraft(hook), { ...toDraft(hook), metadata: " " })).toEqual({ metadata: {} });
});

test.each([
  ["", {}],
  ['{"a":1}', { a: 1 }],
  ["[1]", undefined],
  ["null", undefined],
  ["{", undefined],
])("metadata %j: %j", (typed, value) => {
  expect(metadataOf(typed)).toEqual(value);
});

test("fields can be cleared", () => {
  expect(changes(toDraft(HOOK), { ...toDraft(HOOK), matcher: "", name: "" })).toEqual({ matcher: "", name: "" });
});

test("each handler has its own settings, whatever was typed elsewhere", () => {
  const draft = { ...EMPTY, command: "x", variables: "A, B", url: "https://u", template: "t", source: "s", invocations: "7", ignoreInjection: true };
  expect(toConfig({ ...draft, handler: "command" })).toEqual({ command: "x", allowed_env_vars: ["A", "B"] });
  expect(toConfig({ ...draft, handler: "http" })).toEqual({ url: "https://u" });
  expect(toConfig({ ...draft, handler: "prompt" })).toEqual({ prompt_template: "t", max_invocations_per_turn: 7, on_injection: "ignore" });
  expect(toConfig({ ...draft, handler: "script" })).toEqual({ source: "s" });
  expect(toRecord({ ...draft, scope: "tenant", agents: ["a"] }).agent_ids).toEqual([]);
});

test("what counts where nothing answers goes with the kind of event", () => {
  expect(atEvent({ event: "pre_tool_use", onTimeout: "allow", onTrip: "block" }, "subagent_start")).toEqual({ onTimeout: "allow", onTrip: "block" });
  expect(atEvent({ event: "pre_tool_use", onTimeout: "block", onTrip: "block" }, "stop")).toEqual({ onTimeout: "allow", onTrip: "allow" });
});

test("the bounds of forms are the server's", () => {
  const root = resolve(import.meta.dirname, "../../../crates/rules/src");
  const source = readFileSync(`${root}/record.rs`, "utf8") + readFileSync(`${root}/record/secret.rs`, "utf8") + readFileSync(`${root}/record/config.rs`, "utf8");
  const value = (name: string): number => {
    const text = new RegExp(`const ${name}: \\w+ = ([\\d_ *]+);`).exec(source)?.[1] ?? "";
    return text.split("*").reduce((product, factor) => product * Number(factor.replaceAll("_", "")), 1);
  };
  for (const name of ["MAX_NAME_CHARS", "MAX_TEMPLATE_BYTES", "MAX_COMMAND_BYTES", "MAX_SOURCE_BYTES", "MAX_INVOCATIONS", "MAX_TIMEOUT_MS", "DEFAULT_TIMEOUT_MS"] as const) {
    expect([name, bounds[name]]).toEqual([name, value(name)]);
  }
  expect(source).toContain(`const MASK: &str = "${bounds.MASK}"`);
});

test.each([
  ["", "Bearer x", true],
  [" ", "x", true],
  ["", "", false],
  ["Authorization", "", false],
])("a header called %j with %j lacks its name: %s", (name, value, lacks) => {
  expect(isNameless({ name, value, secret: false })).toBe(lacks);
});

test.each([
  ["1", true],
  ["100", true],
  ["0", false],
  ["101", false],
  ["1.5", false],
  ["five", false],
  ["", false],
])("%s calls per turn: %s", (text, is) => {
  expect(bounds.isBetween(text, 1, bounds.MAX_INVOCATIONS)).toBe(is);
});
