import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { zh } from "../words/zh.ts";
import { whyNot } from "./why-not.ts";

const CRATES = resolve(import.meta.dirname, "../../../crates");

/** What the server says, where it says so, and what stands in a page. */
const SAID = [
  ["switched off", "rules/src/admin/chain.rs", '"switched off"', "switched off", "已停用"],
  ["switched off: it blocks too much", "rules/src/admin/chain.rs", '"switched off: {reason}"', "switched off: it blocks too much", "已停用：it blocks too much"],
  ["not accepted by anybody", "rules/src/admin/chain.rs", '"not accepted by anybody"', "not accepted by anybody", "尚未被接受"],
  ["about other agents", "rules/src/admin/chain.rs", '"about other agents"', "about other agents", "适用于其他智能体"],
  ["about something else", "rules/src/admin/chain.rs", '"about something else"', "about something else", "与此事件无关"],
  ['its matcher "^a\\\\.b$" does not match "exec"', "rules/src/admin/chain.rs", '"its matcher {pattern:?} does not match {value:?}"', "its matcher ^a\\.b$ does not match exec", "匹配规则 ^a\\.b$ 与 exec 不匹配"],
  ['its matcher "\\u{202e}" does not match "exec"', "rules/src/admin/chain.rs", '"its matcher {pattern:?} does not match {value:?}"', "its matcher \\u{202e} does not match exec", "匹配规则 \\u{202e} 与 exec 不匹配"],
  ['its if_expr is false: tool_name == "x"', "rules/src/admin/chain.rs", '"its if_expr is false: {text}"', 'its condition is false: tool_name == "x"', '条件不成立：tool_name == "x"'],
  ['hook "guard" decides before it', "rules/src/admin/chain.rs", '"hook \\"{by}\\" decides before it"', "guard decides before it", "guard 在它之前就已决定"],
  ["it blocks: it timed out", "rules/src/admin/chain.rs", '"it {then}: it {fault}"', "it blocks: it timed out", "会阻止，因为它出错：timed out"],
  ["it is skipped: it timed out", "rules/src/admin/chain.rs", '"is skipped"', "it is skipped: it timed out", "会跳过，因为它出错：timed out"],
  [
    'hook "guard" (7) is off since 2026-11-22T06:44:00Z: circuit breaker, 5 blocks/timeouts in 60 s; matching calls are refused until an administrator re-enables it (pintle hooks reset 7)',
    "domain/src/breaker.rs",
    '"hook \\"{label}\\" ({id}) is off since {since}: circuit breaker, ',
    "its breaker is open",
    "熔断器已断开",
  ],
  ["the agent does not plan: its flow is direct", "gateway/src/methods/listing.rs", '"the agent does not plan: its flow is direct"', "the agent does not plan: its flow is direct", "该智能体不进行规划：其流程为 direct"],
  ['its tool_filter ["a", "b"] does not name "exec"', "gateway/src/methods/listing.rs", '"its tool_filter {:?} does not name {tool:?}"', 'its tool_filter ["a", "b"] does not name exec', '其 tool_filter ["a", "b"] 不含 exec'],
] as const;

test.each(SAID)("%s", (said, file, source, english, chinese) => {
  expect(readFileSync(`${CRATES}/${file}`, "utf8")).toContain(source);
  expect([whyNot(said, en.rules.whyNot), whyNot(said, zh.rules.whyNot)]).toEqual([english, chinese]);
});

test("what nobody here knows stays as the server said it", () => {
  expect(whyNot("a new reason", zh.rules.whyNot)).toBe("a new reason");
  expect(whyNot("", en.rules.whyNot)).toBe("");
});
