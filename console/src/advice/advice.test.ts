import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { zh } from "../words/zh.ts";
import { causeOf, causeOfState, causeOfTest } from "./advice.ts";

test.each([
  ['http handler: ssrf check: ssrf: loopback address "127.0.0.1"', "ssrf"],
  ["evaluator_no_tool_call", "freeText"],
  ["max_invocations_per_turn (5) reached", "cap"],
  ["tenant budget exceeded", "budget"],
  ["command handler not allowed: hook.command_disabled_standard", "edition"],
  ["handler_type, event, and scope are required", "required"],
  ['hook "x" (1) is off since now: circuit breaker, 5 blocks in 60 s', "tripped"],
  ["something else", undefined],
])("%s", (text, cause) => {
  expect(causeOf(text)).toBe(cause);
});

test("an answer that is no JSON, a late one, and a hook that is off", () => {
  expect(causeOfTest({ decision: "allow", durationMs: 1, matcherMatched: true, effective: "allow", nonJson: true })).toBe("notJson");
  expect(causeOfTest({ decision: "timeout", durationMs: 1, matcherMatched: true, effective: "block" })).toBe("late");
  expect(causeOfState({ tripped_at: "now", disabled_reason: "breaker" })).toBe("tripped");
  expect(causeOfState({ tripped_at: null, disabled_reason: "edition" })).toBe("edition");
});

test("the texts that causes are found by are the server's", () => {
  const root = resolve(import.meta.dirname, "../../../crates");
  const files = ["rules/src/record/setting.rs", "rules/src/record/rows.rs", "rules/src/record/handler.rs", "rules/src/record/typed.rs", "rules/src/record/draft.rs", "rules/src/handler/judge.rs", "rules/src/handler/judges.rs"];
  const read = (file: string): string => {
    try {
      return readFileSync(`${root}/${file}`, "utf8");
    } catch {
      return "";
    }
  };
  const source = files.map(read).join("\n");
  expect(source).toContain("handler_type, event, and scope are required");
});

test("every cause has its words in every language", () => {
  for (const words of [en, zh]) {
    for (const { cause, fix } of Object.values(words.advice)) {
      expect(cause.length > 5 && fix.length > 2).toBe(true);
    }
  }
});
