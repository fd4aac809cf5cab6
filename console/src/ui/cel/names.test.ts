import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { COMMAND, FUNCTIONS, SHELL, TYPES, VARIABLES } from "./names.ts";

const ROOT = resolve(import.meta.dirname, "../../../..");
const source = (name: string): string => readFileSync(`${ROOT}/crates/rules/src/condition/${name}.rs`, "utf8");
/** What stands in the brackets of a constant. */
const constant = (file: string, name: string): string => new RegExp(`const ${name}: \\[[^=]*=\\s*\\[([\\s\\S]*?)\\n?\\s*\\];`).exec(source(file))?.[1] ?? "";
const quoted = (text: string): readonly string[] => [...text.matchAll(/"([^"]*)"/g)].map(([, one = ""]) => one);

test("the functions are the server's, and so is how each is called", () => {
  const pairs = [...constant("names", "FUNCTIONS").matchAll(/\("([^"]*)", "([^"]*)"\)/g)].map(([, name, way]) => [name, way]);
  expect(Object.entries(FUNCTIONS)).toEqual(pairs);
});

test("the variables are the server's, with the types of the reference", () => {
  expect(Object.keys(VARIABLES)).toEqual(quoted(/impl Var \{[\s\S]*?\];/.exec(source("node"))?.[0] ?? ""));
  const page = readFileSync(`${ROOT}/docs/reference/conditions.md`, "utf8");
  for (const [name, type] of Object.entries(VARIABLES)) {
    expect(page).toContain(`| \`${name}\` | ${type} | `);
  }
});

test("the members of shell and of its commands are the server's", () => {
  expect(SHELL).toEqual(quoted(constant("value", "SHELL")));
  expect(COMMAND).toEqual(quoted(constant("value", "COMMAND")));
});

test("the types are the server's", () => {
  const named = /fn name\(self\) -> &'static str \{[\s\S]*?\n {4}\}/.exec(source("kind"))?.[0] ?? "";
  expect(TYPES).toEqual(quoted(named));
});
