import { expect, test } from "vitest";

import { isChosen, listOf } from "./first-look.ts";

const HOOKS = { to: "/hooks", name: "Hooks" };

test.each([
  [null, undefined],
  ["", undefined],
  ["[", undefined],
  ["null", undefined],
  ["{}", undefined],
  [JSON.stringify({ language: "en", label: "Pages", pages: [] }), undefined],
  [JSON.stringify({ language: "en", label: "Pages", pages: [null] }), undefined],
  [JSON.stringify({ language: "en", label: "Pages", pages: [{ to: "javascript:alert(1)", name: "x" }] }), undefined],
  [JSON.stringify({ language: "en", label: "Pages", pages: [{ to: "//elsewhere.example", name: "x" }] }), undefined],
  [JSON.stringify({ language: "en", label: "Pages", pages: [{ to: "/\\elsewhere.example", name: "x" }] }), undefined],
  [JSON.stringify({ language: "en", label: "Pages", pages: [{ to: "/\t/elsewhere.example", name: "x" }] }), undefined],
  [JSON.stringify({ language: "en", label: "Pages", pages: [{ to: ["/hooks"], name: "x" }] }), undefined],
  [JSON.stringify({ language: "en", label: "Pages", pages: [HOOKS, { to: "/", name: {} }] }), undefined],
  [JSON.stringify({ language: "zh-CN", label: "Pages", pages: [HOOKS] }), undefined],
  [JSON.stringify({ label: "Pages", pages: [HOOKS] }), undefined],
  [JSON.stringify({ language: "en", label: "Pages", pages: [HOOKS] }), { language: "en", label: "Pages", pages: [HOOKS] }],
])("the list of pages that was kept as %j", (text, list) => {
  expect(listOf(text, "en")).toEqual(list);
});

test.each([
  ["/", "/", true],
  ["/", "/hooks", false],
  ["/hooks", "/hooks/changes", true],
  ["/hooks", "/hooksy", false],
])("the link to %s at %s", (to, path, is) => {
  expect(isChosen(to, path)).toBe(is);
});
