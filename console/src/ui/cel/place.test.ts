import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { wrongIn } from "./place.ts";

const marked = (text: string, said: object): string | undefined => {
  const part = wrongIn(text, { ok: false, ...said });
  return part === null ? undefined : text.slice(part.from, part.to);
};

test.each([
  ["tool_name = 1", 1, 11, "="],
  ["depth > 1 &&\n  foo bar", 2, 7, "bar"],
  // What is missing at the end is marked where it is missing.
  ["tool_name ==", 1, 13, "=="],
  ["tool_name ==\n", 2, 1, "=="],
  // Columns count bytes.
  ['"é€😀" x', 1, 14, "x"],
  ['"é€😀" x', 1, 2, '"é€😀"'],
  ["depth", 9, 9, "depth"],
])("%j at %i:%i: %j is marked", (text, line, column, piece) => {
  expect(marked(text, { line, column })).toBe(piece);
});

test.each([
  ['"tool_nam" == tool_nam', 'cel parse "…": unknown variable `tool_nam` (did you mean `tool_name`?)', 14],
  ["shell.url == []", 'cel parse "…": unknown member of `shell` `url` (did you mean `urls`?)', 6],
  ["lower(tool_name)", 'cel parse "…": unknown function `lower`; known are size, contains', 0],
  ["has(1)", 'cel parse "…": `has` is called as has(map.member)', 0],
  ["timestamp(1)", 'cel parse "…": `timestamp` is not available: no variable of a condition is a time', 0],
])("%j: the name is found of which is said %s", (text, error, from) => {
  expect(wrongIn(text, { ok: false, error })?.from).toBe(from);
});

test("nothing is marked where nothing is wrong, or nobody knows where", () => {
  expect(wrongIn("true", { ok: true })).toBeNull();
  expect(wrongIn("1", { ok: false, error: "expression must be bool, got int" })).toBeNull();
  expect(wrongIn("", { ok: false, line: 1, column: 1 })).toBeNull();
});

test("the server still says it in these words", () => {
  const source = (name: string): string => readFileSync(resolve(import.meta.dirname, `../../../../crates/rules/src/condition/${name}.rs`), "utf8");
  expect(source("names")).toContain("unknown {what} `{}`{hint}");
  expect(source("names")).toContain("`{name}` is called as {way}");
  expect(source("names")).toContain("`{name}` is not available");
  expect(source("names")).toContain('unknown("function", name');
  expect(source("lower")).toContain('names::unknown("variable", name');
  expect(source("lower")).toContain('names::unknown("member of `shell`"');
});
