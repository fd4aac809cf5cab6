import { expect, test } from "vitest";

import { piecesOf } from "./said.ts";

test.each([
  ["no code", [["no code", false]]],
  ["every call of `exec` by `main` waits", [["every call of ", false], ["exec", true], [" by ", false], ["main", true], [" waits", false]]],
  ["one ` alone", [["one ` alone", false]]],
  ["`` is nothing", [["`` is nothing", false]]],
  ["", []],
])("%s", (text, pieces) => {
  expect(piecesOf(text).map((piece) => [piece.text, piece.isCode])).toEqual(pieces);
});
