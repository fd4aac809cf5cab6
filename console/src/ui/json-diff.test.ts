import { expect, test } from "vitest";

import { diff, lines } from "./json-diff.ts";

test.each([
  [["a", "b"], ["a", "b"], "a|a b|b"],
  [["a", "b", "c"], ["a", "c"], "a|a b|- c|c"],
  [["a", "x", "c"], ["a", "y", "z", "c"], "a|a x|y -|z c|c"],
  [[], ["a"], "-|a"],
])("%j and %j", (before, after, expected) => {
  const all = diff(before, after).map((line) => `${line.before ?? "-"}|${line.after ?? "-"}`);
  expect(all.join(" ")).toBe(expected);
});

test("the order of members makes no difference", () => {
  expect(lines({ b: 1, a: [{ d: 1, c: 2 }] })).toEqual(lines({ a: [{ c: 2, d: 1 }], b: 1 }));
});
