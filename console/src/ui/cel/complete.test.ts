import { CompletionContext } from "@codemirror/autocomplete";
import { EditorState } from "@codemirror/state";
import { expect, test } from "vitest";

import { complete, offers } from "./complete.ts";
import { COMMAND, FUNCTIONS, SHELL, VALUES, VARIABLES } from "./names.ts";

const labels = (before: string): readonly string[] | undefined => offers(before)?.offers.map(({ label }) => label);
const METHODS = ["contains", "startsWith", "endsWith", "matches", "all", "exists", "exists_one", "map", "filter"];

test("every variable, function and value can be found", () => {
  expect(labels("")).toEqual([...Object.keys(VARIABLES), ...Object.keys(FUNCTIONS).filter((name) => !METHODS.includes(name)), ...VALUES]);
  expect(labels("tool_input.cmd.")).toEqual(METHODS);
});

test.each([
  ["tool", 0],
  ["!to", 1],
  ['tool_name == "exec" && siz', 23],
  ["tool_input.cmd.star", 15],
])("%j: the word begins at %i", (before, from) => {
  expect(offers(before)?.from).toBe(from);
});

test.each(['tool_name == "ex', "depth // de", "3u", "12", "1.", 'r"to'])("nothing stands behind %j", (before) => {
  expect(offers(before)).toBeNull();
});

test("the members of shell and of its commands are offered, and what macros name", () => {
  expect(labels("shell.")).toEqual(SHELL);
  expect(labels("shell.comm")).toEqual(SHELL);
  expect(labels("shell.commands[0].")).toEqual([...COMMAND, ...METHODS]);
  expect(labels("shell.commands.exists(c, c.")).toEqual([...COMMAND, ...METHODS]);
  expect(labels("shell.urls.all(u, u.")).toEqual(METHODS);
  expect(labels("shell.urls.all(url, ")?.[0]).toBe("url");
  // A member of that name is something else.
  expect(labels("tool_input.shell.")).toEqual(METHODS);
});

test("the list opens for a word, behind a point, and when it is asked for", () => {
  const at = (doc: string, explicit = false) => complete(new CompletionContext(EditorState.create({ doc }), doc.length, explicit));
  expect(at("to")?.from).toBe(0);
  expect(at("shell.")?.from).toBe(6);
  expect(at("depth > ")).toBeNull();
  expect(at("depth > ", true)?.from).toBe(8);
  expect(at("to")?.options.find(({ label }) => label === "tool_name")?.detail).toBe("string");
});
