import { StreamLanguage } from "@codemirror/language";
import { expect, test, vi } from "vitest";

import { parser, read } from "./tokens.ts";

/** The pieces, each with what it is. */
const kinds = (text: string): readonly string[] => read(text).pieces.map(({ from, to, kind }) => `${kind.replace("variableName.", "")} ${text.slice(from, to)}`);

test.each([
  ["true && null", ["atom true", "operator &&", "atom null"]],
  ["!first_prompt", ["operator !", "special first_prompt"]],
  ['"x" in tool_input', ["string \"x\"", "keyword in", "special tool_input"]],
  ["size(x) >= 3u", ["function size", "punctuation (", "variableName x", "punctuation )", "operator >=", "number 3u"]],
  ["0xFFu 1.5e-3 .5 2", ["number 0xFFu", "number 1.5e-3", "number .5", "number 2"]],
  ["[1][0]", ["punctuation [", "number 1", "punctuation ]", "punctuation [", "number 0", "punctuation ]"]],
  ["type(depth) == int", ["function type", "punctuation (", "special depth", "punctuation )", "operator ==", "typeName int"]],
  // A member is not the variable of that name, and a method is one only where it is called.
  ["tool_input.depth", ["special tool_input", "operator .", "propertyName depth"]],
  ["tool_input . true", ["special tool_input", "operator .", "propertyName true"]],
  ["a.matches (b)", ["variableName a", "operator .", "function matches", "punctuation (", "variableName b", "punctuation )"]],
  ["a.matches", ["variableName a", "operator .", "propertyName matches"]],
  ["a.`b-c`", ["variableName a", "operator .", "propertyName `b-c`"]],
  ["constructor(a)", ["variableName constructor", "punctuation (", "variableName a", "punctuation )"]],
  ["depth // > 1", ["special depth", "comment // > 1"]],
  ["depth // what\n> 1", ["special depth", "comment // what", "operator >", "number 1"]],
  ["'//'", ["string '//'"]],
  ["true ? 1 : 2", ["atom true", "operator ?", "number 1", "operator :", "number 2"]],
])("%s", (text, pieces) => {
  expect(kinds(text)).toEqual(pieces);
});

test.each([
  [String.raw`"a\"b" x`, String.raw`"a\"b"`],
  [String.raw`r"a\" x`, String.raw`r"a\"`],
  [String.raw`b'\'' x`, String.raw`b'\''`],
  [String.raw`Rb"\" x`, String.raw`Rb"\"`],
  [String.raw`br'''a'b\''' x`, String.raw`br'''a'b\'''`],
  ['"""a "quoted" text""" x', '"""a "quoted" text"""'],
  ["'' x", "''"],
])("the text ends where it ends: %s", (text, first) => {
  expect(kinds(text)).toEqual([`string ${first}`, "variableName x"]);
});

test.each([
  ["tool_name ==", false],
  ['tool_name == "ex', true],
  ['tool_name == "exec"', false],
  ['"""a\n\n"b', true],
  ['"""a\n"b"""', false],
  ["depth > 1 // and", true],
  ["depth > 1 // and\n", false],
])("%j is open: %s", (text, isOpen) => {
  expect(read(text).isOpen).toBe(isOpen);
});

test("the editor knows every kind", () => {
  const warn = vi.spyOn(console, "warn");
  const text = 'size(tool_input.a) > 1 && true in [depth, int, x] // "so"\n|| r\'\'\'a\nb\'\'\' == "c"';
  const tree = StreamLanguage.define(parser).parser.parse(text);
  const kinds: string[] = [];
  tree.iterate({ enter: ({ name, from, to }) => void (name.startsWith("string") && kinds.push(text.slice(from, to))) });
  expect(kinds).toEqual(["r'''a", "b'''", '"c"']);
  expect(warn).not.toHaveBeenCalled();
  warn.mockRestore();
});
