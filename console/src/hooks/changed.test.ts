import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { because, changed, switchedTo, wordOf } from "./changed.ts";

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

test("what was done is a word, also where nobody knows it yet", () => {
  expect(wordOf({ action: "deleted", diff: null }, en.overview.actions)).toBe("deleted");
  expect(wordOf({ action: "strange", diff: null }, en.overview.actions)).toBe("strange");
});
