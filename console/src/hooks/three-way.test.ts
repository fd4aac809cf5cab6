import { expect, test } from "vitest";

import { changes, type Draft, EMPTY } from "./draft.ts";
import { merged } from "./three-way.ts";

const BASE: Draft = { ...EMPTY, name: "n", url: "https://a.example", matcher: "^exec$" };
const of = (change: Partial<Draft>): Draft => ({ ...BASE, ...change });

test("only what somebody touched is theirs", () => {
  const theirs = of({ timeoutMs: "3000", matcher: "^write$" });
  const { draft, mine, both } = merged(BASE, theirs, of({ priority: "7" }));
  expect(draft).toEqual({ ...theirs, priority: "7" });
  expect([mine, both]).toEqual([["priority"], []]);
  expect(changes(theirs, draft)).toEqual({ priority: 7 });
});

test("what both touched is said, and what both wanted is nobody's", () => {
  const theirs = of({ matcher: "^write$", priority: "7" });
  const { draft, mine, both } = merged(BASE, theirs, of({ matcher: "^read$", priority: "7" }));
  expect(draft.matcher).toBe("^read$");
  expect([mine, both]).toEqual([["matcher"], ["matcher"]]);
});

test("settings of one handler stand beside each other", () => {
  const theirs = of({ strict: true });
  const { draft } = merged(BASE, theirs, of({ url: "https://b.example" }));
  expect(changes(theirs, draft)).toEqual({ config: { url: "https://b.example", strict: true } });
});

test("what another handler has no use for counts for nothing", () => {
  const theirs = of({ handler: "script", source: "function handle() {}" });
  const { draft, mine } = merged(BASE, theirs, of({ url: "https://b.example" }));
  expect(mine).toEqual([]);
  expect(changes(theirs, draft)).toEqual({});
});

test("who moved a hook to another handler brings what it needs", () => {
  const { draft, mine } = merged(BASE, of({ url: "https://c.example" }), of({ handler: "script", source: "s" }));
  expect(mine).toEqual(["handler", "source"]);
  expect([draft.handler, draft.source]).toEqual(["script", "s"]);
});
