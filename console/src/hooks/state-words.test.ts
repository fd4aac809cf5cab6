import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { zh } from "../words/zh.ts";

test.each([en, zh])("each state that hooks are looked for by has a word of its own", ({ hooks, overview: { guards } }) => {
  const { off, tripped, edition, agents } = hooks.states;
  const words = [hooks.onOrNot, off, tripped, edition, agents, guards.armed, guards.unproven, guards.broken];
  expect(new Set(words).size).toBe(words.length);
});
