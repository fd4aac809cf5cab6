import { expect, test } from "vitest";

import { isolated } from "./isolated.ts";

const words = isolated({ by: (who: string) => `by ${who}.`, all: { of: (names: readonly string[], n: number) => `${n}: ${names.join(", ")}` }, keys: [["a", "b"]], plain: "a" });

test.each([
  ["anna", "by anna."],
  ["\u202Eanna", "by \u2068\u202Eanna\u2069."],
  ["x\u2069\u202Ey", "by \u2068x\u202Ey\u2069."],
  ["שרה", "by \u2068שרה\u2069."],
])("%j: %j", (who, said) => {
  expect(words.by(who)).toBe(said);
});

test("names in lists have their bounds, and what is no name stays", () => {
  expect(words.all.of(["a", "\u202Eb"], 2)).toBe("2: a, \u2068\u202Eb\u2069");
  expect([words.keys, words.plain]).toEqual([[["a", "b"]], "a"]);
});
