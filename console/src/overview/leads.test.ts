import { expect, test } from "vitest";

import { turnsOf } from "./leads.ts";

test("a number leads to the turns of the time that it was counted in", () => {
  expect(turnsOf("no-keys", "hour", "blocked")).toEqual({ hook: "no-keys", span: "hour", decision: "blocked" });
  expect(turnsOf("no-keys", "week")).toEqual({ hook: "no-keys", span: "week" });
});
