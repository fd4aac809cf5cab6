import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { because, budgetsBefore, budgetSet, changed, deedOf, owesReason, restoredOver, switchedTo, wordOf } from "./changed.ts";

test.each([
  [[{ op: "replace", path: "/matcher", value: "x" }, { op: "replace", path: "/config/source" }, { op: "add", path: "/config/url" }], ["matcher", "config"]],
  [[{ op: "replace", path: "/version" }, { op: "replace", path: "/updated_at" }], []],
  [[{ op: "add", path: "", value: {} }, null, 7], []],
  [null, []],
  ["strange", []],
] as const)("%j: %j", (diff, names) => {
  expect(changed(diff)).toEqual(names);
});

test.each([
  [[{ op: "add", path: "/disabled_reason", value: "it blocks too much" }, { op: "replace", path: "", value: null }], "it blocks too much"],
  [[{ op: "replace", path: "/budget_total", value: 5 }, { op: "replace", path: "/reason", value: "a quiet month" }], "a quiet month"],
  [[{ op: "replace", path: "/disabled_reason", value: null }], ""],
  [[{ op: "replace", path: "/disabled_reason", value: "breaker" }], ""],
  [[null, 7], ""],
  [undefined, ""],
] as const)("why: %j: %j", (diff, why) => {
  expect(because(diff)).toBe(why);
});

test.each([
  [[{ op: "replace", path: "/enabled", value: false }, { op: "add", path: "/disabled_reason", value: "x" }], false, "switched off"],
  [[{ op: "replace", path: "/enabled", value: true }], true, "switched on"],
  [[{ op: "replace", path: "/disabled_reason", value: "y" }], undefined, "switched on or off"],
  [null, undefined, "switched on or off"],
] as const)("switched: %j", (diff, to, word) => {
  expect(switchedTo(diff)).toBe(to);
  expect(wordOf({ action: "toggled", diff }, en.overview.actions)).toBe(word);
});

test("a change of a budget says from what to what, as far as that is known", () => {
  const change = (id: string, tenant_id: string, value: unknown) => ({ id, tenant_id, diff: [{ op: "replace", path: "/budget_total", value }] });
  const all = [change("4", "a", 7), { id: "3", tenant_id: "a", diff: [{ op: "replace", path: "/matcher", value: "x" }] }, change("2", "b", 9), change("1", "a", 5)];
  expect([...budgetsBefore(all)]).toEqual([["4", 5]]);
  expect(all.map(({ diff }) => budgetSet(diff))).toEqual([7, undefined, 9, 5]);
});

test.each([
  ["toggled", "anna", [{ op: "replace", path: "/enabled", value: false }], true],
  ["toggled", "anna", [{ op: "replace", path: "/enabled", value: false }, { op: "replace", path: "/disabled_reason", value: "a test" }], false],
  ["toggled", "anna", [{ op: "replace", path: "/enabled", value: true }], false],
  ["updated", "anna", [{ op: "replace", path: "/enabled", value: false }], true],
  ["updated", "anna", [{ op: "replace", path: "/priority", value: 2 }], false],
  ["deleted", "anna", [{ op: "replace", path: "", value: null }], true],
  ["deleted", "anna", [{ op: "add", path: "/disabled_reason", value: "no longer used" }, { op: "replace", path: "", value: null }], false],
  ["toggled", "system:boot", [{ op: "replace", path: "/enabled", value: false }], false],
] as const)("%s by %s, %j: whether a reason is missing: %s", (action, actor, diff, owes) => {
  expect(owesReason({ action, actor, diff })).toBe(owes);
});

test("what is restored has the settings of then, and is on, where it holds, and whose it is as today", () => {
  const now = { id: "h", version: 4, enabled: false, disabled_reason: "late", scope: "tenant", matcher: "^exec$", metadata: {} };
  const then = { id: "h", version: 1, enabled: true, disabled_reason: "", scope: "global", matcher: "^write$", metadata: { ticket: "OPS-7" } };
  expect(restoredOver(now, then)).toEqual({ ...now, matcher: "^write$", metadata: { ticket: "OPS-7" } });
});

test("what stays is what the server keeps", () => {
  const source = readFileSync(resolve(import.meta.dirname, "../../../crates/rules/src/admin/logged.rs"), "utf8");
  const [, list = ""] = /const NOT_RESTORED: \[&str; \d+\] =\s+\[([^\]]*)\];/.exec(source) ?? [];
  const stays = [...list.matchAll(/"(\w+)"/g)].map(([, name = ""]) => name);
  expect(stays.length).toBeGreaterThan(0);
  const now = Object.fromEntries([...stays, "enabled", "scope", "matcher"].map((name) => [name, "now"]));
  const then = Object.fromEntries(Object.keys(now).map((name) => [name, "then"]));
  expect(restoredOver(now, then)).toEqual({ ...now, matcher: "then" });
});

test("a version says what it switched, and why", () => {
  const version = (n: number, action: string, hook: object) => ({ version: n, at: "", actor: "anna", action, hook: { ...hook } });
  const first = version(1, "created", { enabled: true, disabled_reason: "" });
  const off = version(2, "toggled", { enabled: false, disabled_reason: "it blocks too much" });
  const on = version(3, "toggled", { enabled: true, disabled_reason: "" });
  const mute = version(4, "toggled", { enabled: false, disabled_reason: "" });
  expect(deedOf(first, undefined, en.overview.actions)).toEqual({ word: "created", why: "", owes: false });
  expect(deedOf(off, first, en.overview.actions)).toEqual({ word: "switched off", why: "it blocks too much", owes: false });
  expect(deedOf(on, off, en.overview.actions)).toEqual({ word: "switched on", why: "", owes: false });
  expect(deedOf(mute, on, en.overview.actions)).toEqual({ word: "switched off", why: "", owes: true });
});

test("what was done is a word, also where nobody knows it yet", () => {
  expect(wordOf({ action: "deleted", diff: null }, en.overview.actions)).toBe("deleted");
  expect(wordOf({ action: "strange", diff: null }, en.overview.actions)).toBe("strange");
});
