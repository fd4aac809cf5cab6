import { expect, test } from "vitest";

import { dropTyped, formPlace, hasDrafts, keepTyped, keptTyped } from "./drafts.ts";

const anna = { user_id: "anna", tenant_id: "t" };
const BEGAN = { userId: "", role: "viewer" };

test("what was typed in a form is there again for the same person, and for nobody else", () => {
  const place = formPlace(anna, "members.add");
  const typed = { userId: "carl", role: "admin" };
  keepTyped(place, typed, BEGAN);
  typed.userId = "changed since";
  expect(keptTyped(place)).toEqual({ userId: "carl", role: "admin" });
  expect([keptTyped(formPlace({ ...anna, user_id: "ben" }, "members.add")), keptTyped(formPlace({ ...anna, tenant_id: "u" }, "members.add")), keptTyped(formPlace(anna, "tenants.create"))]).toEqual([undefined, undefined, undefined]);
  expect(hasDrafts()).toBe(true);
  dropTyped(place);
  expect([keptTyped(place), hasDrafts()]).toEqual([undefined, false]);
});

test("a form as it began is no draft", () => {
  const place = formPlace(anna, "members.add");
  keepTyped(place, { ...BEGAN, userId: "c" }, BEGAN);
  keepTyped(place, { ...BEGAN }, BEGAN);
  expect([keptTyped(place), hasDrafts()]).toEqual([undefined, false]);
});
