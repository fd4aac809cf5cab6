import { expect, test } from "vitest";

import type { SeenMessage } from "../wire/types.ts";
import { linesOf, parted, textOf } from "./seen-text.ts";

const SAID: SeenMessage = { role: "user", content: "hi", from: "user", isNew: false };
const CALLS: SeenMessage = { role: "assistant", content: "", from: "model", isNew: true, tool_calls: [{ id: "c", type: "function", function: { name: "exec", arguments: "{}" } }] };

test("a request is a text that can be compared", () => {
  expect(linesOf(SAID)).toBe("[user]\nhi");
  expect(linesOf(CALLS)).toBe("[assistant]\n→ exec({})");
  expect(textOf({ model: "a/b", messages: [SAID, CALLS], tools: ["exec", "fetch"] })).toBe("a/b\n\n[user]\nhi\n\n[assistant]\n→ exec({})\n\nexec, fetch");
});

test("what is new stands apart", () => {
  expect(parted([SAID, CALLS])).toEqual({ known: [SAID], fresh: [CALLS] });
});
