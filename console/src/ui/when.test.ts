import { expect, test } from "vitest";

import { relative, withMoments } from "./when.tsx";

test.each([
  [23 * 3_600, "en", "in 23 hr."],
  [86_400, "en", "in 24 hr."],
  [86_400 - 20, "en", "in 24 hr."],
  [90 * 86_400 - 20, "en", "in 90 days"],
  [-47 * 3_600, "en", "yesterday"],
  [23 * 3_600, "zh-CN", "23 小时后"],
  [-4 * 60, "zh-CN", "4 分钟前"],
] as const)("in %s seconds, %s: %s", (seconds, language, said) => {
  expect(relative(seconds * 1_000, 0, language)).toBe(said);
});

test("a moment in a text of the server is one that people read", () => {
  const at = "2026-11-27T06:00:34.592995Z";
  const exact = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "long" }).format(Date.parse(at));
  expect(withMoments(`its circuit breaker tripped at ${at} and refuses every matching call`, "en")).toBe(`its circuit breaker tripped at ${exact} and refuses every matching call`);
  expect(withMoments("no moment", "en")).toBe("no moment");
});
