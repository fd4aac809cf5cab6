import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { hasDrafts, keepReason, keptReason, MAX_REASON_BYTES, reasonPlace } from "./reason.ts";

test("a reason is kept for whoever typed it, about one call, until it is sent", () => {
  const anna = { user_id: "anna", tenant_id: "t" };
  const place = reasonPlace(anna, "1");
  keepReason(place, "it is a test");
  expect([keptReason(place), keptReason(reasonPlace(anna, "2")), keptReason(reasonPlace({ ...anna, user_id: "ben" }, "1")), hasDrafts()]).toEqual(["it is a test", "", "", true]);
  keepReason(place, "");
  expect([keptReason(place), hasDrafts()]).toEqual(["", false]);
});

test("the longest reason is the server's", () => {
  const source = readFileSync(resolve(import.meta.dirname, "../../../crates/gateway/src/methods/approvals.rs"), "utf8");
  expect(source).toContain(`const MAX_REASON_BYTES: usize = ${MAX_REASON_BYTES};`);
});
