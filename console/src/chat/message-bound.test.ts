import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { MAX_MESSAGE_CHARS, tooLong } from "./message-bound.ts";

test.each([
  ["a short one", "hello", undefined],
  ["the longest one", "x".repeat(MAX_MESSAGE_CHARS), undefined],
  ["the longest one of characters that are two units", "🙂".repeat(MAX_MESSAGE_CHARS), undefined],
  ["one that is too long", "x".repeat(MAX_MESSAGE_CHARS + 1), MAX_MESSAGE_CHARS + 1],
])("%s", (_, text, length) => {
  expect(tooLong(text)).toBe(length);
});

test("the longest message is the server's", () => {
  const source = readFileSync(resolve(import.meta.dirname, "../../../crates/gateway/src/methods/chat.rs"), "utf8");
  expect(Number(/const MAX_MESSAGE: usize = ([\d_]+);/.exec(source)?.[1]?.replaceAll("_", ""))).toBe(MAX_MESSAGE_CHARS);
});
