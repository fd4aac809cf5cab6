import { expect, test } from "vitest";

import { mayDo } from "./may.ts";

const ALL = ["operator.read", "operator.write", "operator.approvals", "operator.guard", "operator.admin"] as const;

test("a key that may not approve is not said to", () => {
  expect(mayDo({ role: "operator", scopes: ["operator.read", "operator.write"] }, true)).toEqual(["talk", "try"]);
  expect(mayDo({ role: "operator", scopes: ["operator.approvals"] }, true)).toEqual(["approve"]);
});

test("who did not sign in talks and tries nothing", () => {
  expect(mayDo({ role: "operator", scopes: ["operator.read", "operator.write"] }, false)).toEqual(["talk"]);
});

test("roles without a key have all of theirs", () => {
  expect(mayDo({ role: "viewer", scopes: ALL }, true)).toEqual(["read"]);
  expect(mayDo({ role: "operator", scopes: ALL }, true)).toEqual(["talk", "approve", "try"]);
  expect(mayDo({ role: "admin", scopes: ALL }, true)).toEqual(["talk", "approve", "change", "seeAll", "people"]);
  expect(mayDo({ role: "owner", scopes: ALL }, true)).toEqual(["everywhere", "global", "tenants"]);
});
