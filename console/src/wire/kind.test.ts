import { expect, test } from "vitest";

import { RequestError } from "./client.ts";
import { kindOf } from "./kind.ts";

test.each([
  ["a hook blocked the message", new RequestError({ code: "FAILED_PRECONDITION", message: "in any words", details: { kind: "hook_blocked", hook: "h" } }), "hook_blocked"],
  ["a message that only reads like it", new RequestError({ code: "FAILED_PRECONDITION", message: "hook blocked user_prompt_submit: h: no" }), undefined],
  ["a kind that is no word", new RequestError({ code: "INTERNAL", message: "x", details: { kind: 7 } }), undefined],
  ["details without a kind", new RequestError({ code: "INTERNAL", message: "x", details: null }), undefined],
  ["no refusal", new Error("hook blocked"), undefined],
])("%s: the kind is the server's word, not its text", (_, error, kind) => {
  expect(kindOf(error)).toBe(kind);
});
