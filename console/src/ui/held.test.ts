import { expect, test } from "vitest";

import { held } from "./held.ts";

const row = (id: string, text = "") => ({ id, text });
const idOf = ({ id }: { id: string }): string => id;

test.each([
  ["nothing was there", [], [row("a"), row("b")], false, ["a", "b"], 0],
  ["one came", [row("b")], [row("a"), row("b")], false, ["b"], 1],
  ["one is gone", [row("a"), row("b")], [row("b")], false, ["b"], 0],
  ["one gave way to a newer one", [row("b"), row("c")], [row("a"), row("b")], true, ["b", "c"], 1],
  ["all are gone, and another one came", [row("a")], [row("b")], false, ["b"], 0],
] as const)("%s", (_, before, now, keeps, shown, newer) => {
  const is = held(before, now, idOf, keeps);
  expect([is.shown.map(idOf), is.newer]).toEqual([shown, newer]);
});

test.each([
  ["nothing moved", ["a", "b"], ["a", "b"], false, ["a", "b"], false],
  ["two changed places", ["a", "b", "c"], ["c", "a", "b"], false, ["a", "b", "c"], true],
  ["one came between them", ["a", "b"], ["a", "x", "b"], false, ["a", "b"], false],
  ["one is gone", ["a", "b", "c"], ["a", "c"], false, ["a", "c"], false],
  ["one gave way to newer ones", ["b", "c"], ["a", "b"], true, ["b", "c"], false],
] as const)("the order that somebody reads stays: %s", (_, before, now, keeps, shown, isMoved) => {
  const is = held(before.map((id) => row(id)), now.map((id) => row(id)), idOf, keeps);
  expect([is.shown.map(idOf), is.isMoved]).toEqual([shown, isMoved]);
});

test("a row that is there is shown as it is now", () => {
  expect(held([row("a", "old")], [row("a", "new")], idOf, false).shown).toEqual([row("a", "new")]);
});
