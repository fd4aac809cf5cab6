import { expect, test } from "vitest";

import { nameIn, plainName, sizeOf, typeOf } from "./media.ts";

test.each([
  ["a.md", "", "text/markdown"],
  ["server.log", "", "text/plain"],
  ["a.png", "image/png", "image/png"],
  ["noending", "", ""],
])("%s of the type %j is %j", (name, type, expected) => {
  expect(typeOf(name, type)).toBe(expected);
});

test("names go into a header and come out of it", () => {
  expect(plainName('a "b" \\ 图.png')).toBe("a _b_ _ _.png");
  expect(nameIn('attachment; filename="a b.png"')).toBe("a b.png");
  expect(nameIn("attachment")).toBe("");
});

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1_500, "1.5 kB"],
  [25_000, "25 kB"],
  [26_214_400, "26.2 MB"],
])("%d bytes are %s", (bytes, expected) => {
  expect(sizeOf(bytes)).toBe(expected);
});
