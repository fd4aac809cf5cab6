import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { zh } from "../words/zh.ts";
import { causeOf, causeOfState, causeOfTest, PATTERNS } from "./advice.ts";

test.each([
  ['http handler: ssrf check: ssrf: loopback address "127.0.0.1"', "ssrf"],
  ["hook: http handler: ssrf check: ssrf: empty host", "noUrl"],
  ['is unavailable: ssrf: scheme "ftp" not allowed (only http/https)', "noUrl"],
  ["hook: http handler: ssrf check: ssrf: port 22 not allowed", "port"],
  ['is unavailable: ssrf: resolve "policy.invalid"', "unresolved"],
  ['ssrf: "policy.example" resolved to no addresses', "unresolved"],
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

/** Where the server says the text that a cause is known by, and how it says it: what a program puts in stands in braces. */
const SAID: Readonly<Record<(typeof PATTERNS)[number][0], readonly (readonly [string, string, string])[]>> = {
  noUrl: [
    ["egress/src/lib.rs", "ssrf: parse url", "ssrf: parse url"],
    ["egress/src/lib.rs", "ssrf: empty host", "ssrf: empty host"],
    ["egress/src/lib.rs", "ssrf: credentials in url", "ssrf: credentials in url"],
    ["egress/src/lib.rs", 'ssrf: scheme \\"{0}\\" not allowed', 'ssrf: scheme "ftp" not allowed'],
  ],
  port: [["egress/src/lib.rs", "ssrf: port {0} not allowed", "ssrf: port 1 not allowed"]],
  unresolved: [
    ["egress/src/lib.rs", 'ssrf: resolve \\"{host}\\"', 'ssrf: resolve "a.example"'],
    ["egress/src/lib.rs", 'ssrf: \\"{0}\\" resolved to no addresses', 'ssrf: "a.example" resolved to no addresses'],
  ],
  ssrf: [
    ["rules/src/record/handler.rs", "ssrf check: {why}", "ssrf check: ssrf: IP ::1 is in a blocked range"],
    ["egress/src/lib.rs", "ssrf: IP {0} is in a blocked range", "ssrf: IP 127.0.0.1 is in a blocked range"],
    ["egress/src/lib.rs", 'ssrf: \\"{host}\\" resolved to blocked IP {ip}', 'ssrf: "a.example" resolved to blocked IP 10.0.0.1'],
  ],
  freeText: ["evaluator_no_tool_call", "evaluator_empty_response", "evaluator_wrong_tool", "evaluator_args_parse_error", "evaluator_invalid_decision"].map((text) => ["rules/src/reply/evaluator.rs", text, text] as const),
  cap: [["rules/src/handler/judging.rs", "max_invocations_per_turn ({max_per_turn}) reached", "max_invocations_per_turn (5) reached"]],
  budget: [["rules/src/handler/judging.rs", "tenant budget exceeded: {need}", "tenant budget exceeded: 3"]],
  edition: [["rules/src/handler.rs", "command handler not allowed: hook.command_disabled_standard", "command handler not allowed: hook.command_disabled_standard"]],
  required: [["rules/src/record/rows.rs", "handler_type, event, and scope are required", "handler_type, event, and scope are required"]],
  tripped: [["domain/src/breaker.rs", "is off since {since}: circuit breaker, {THRESHOLD}", "is off since now: circuit breaker, 5"]],
};

test.each(PATTERNS.map(([cause]) => cause))("the texts that %s is known by are the server's", (cause) => {
  expect(SAID[cause].length).toBeGreaterThan(0);
  for (const [file, text, example] of SAID[cause]) {
    // A text may be broken over lines, where a backslash swallows the blanks.
    const source = readFileSync(resolve(import.meta.dirname, "../../../crates", file), "utf8").replaceAll(/\\\n\s*/g, "");
    expect([file, text, source.includes(text)]).toEqual([file, text, true]);
    expect([example, causeOf(example)]).toEqual([example, cause]);
  }
});

test("every cause has its words in every language", () => {
  for (const words of [en, zh]) {
    for (const { cause, fix } of Object.values(words.advice)) {
      expect(cause.length > 5 && fix.length > 2).toBe(true);
    }
  }
});
