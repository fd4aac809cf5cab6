import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";

import type { ShellFacts as Facts } from "../wire/types.ts";
import { en } from "../words/en.ts";
import { SpokenContext } from "../words/use-words.ts";
import { ShellFacts } from "./shell-facts.tsx";

const NOTHING = { commands: [], deletes: [], writes: [], reads: [], urls: [], outside: [], unknown: true, unknown_why: "", pipes_to_interpreter: false } as unknown as Facts;
const shown = (facts: object): string =>
  renderToStaticMarkup(createElement(SpokenContext, { value: { language: "en", words: en } }, createElement(ShellFacts, { facts: { ...NOTHING, ...facts } })));

test("a label stands only before something", () => {
  expect(shown({})).not.toContain(en.approvals.shell.runs);
  expect(shown({ commands: [{ argv: [], name: "", cwd: "" }] })).not.toContain(en.approvals.shell.runs);
  expect(shown({ commands: [{ argv: ["ls", "-l"], name: "ls", cwd: "" }] })).toContain("ls -l");
});

test("what cannot be seen in a path stands there as a mark", () => {
  expect(shown({ deletes: ["a\u202Eb"] })).toMatch(/>a<span data-mark="hidden"[^>]*>U\+202E<\/span>b</);
});
