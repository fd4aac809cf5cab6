import { expect, test } from "vitest";

import { noteOfPerson } from "./said.ts";

test.each([
  ['Tool execution refused by a person (asked by hook "agents.main.ask")', ""],
  ['Tool execution refused by a person: use the other one (asked by hook "h")', "use the other one"],
  ["Tool execution refused by a person: not today", "not today"],
  ["forced pushes are done by people", undefined],
])("%s", (refusal, note) => {
  expect(noteOfPerson(refusal)).toBe(note);
});
