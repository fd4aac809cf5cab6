import { expect, test } from "vitest";

import { mayAs, missingScopes, takesReading } from "./may.ts";

test("a key takes away what its scopes lack, whatever the role has", () => {
  const talks = { role: "operator", scopes: ["operator.read", "operator.write"] } as const;
  expect([mayAs(talks, "operator", "operator.write"), mayAs(talks, "operator", "operator.approvals"), mayAs(talks, "operator"), mayAs(talks, "admin")]).toEqual([true, false, true, false]);
  expect(missingScopes(talks)).toEqual(["operator.approvals"]);
  expect(missingScopes({ role: "operator", scopes: ["operator.approvals"] })).toEqual(["operator.read", "operator.write"]);
});

test("a viewer lacks nothing that only operators have", () => {
  expect(missingScopes({ role: "viewer", scopes: ["operator.read"] })).toEqual([]);
});

test.each([
  ["/", true],
  ["/chat", true],
  ["/approvals", false],
  ["/approvals/x", false],
  ["/settings/you", false],
  ["/hooks", true],
])("the page at %s takes the scope to look: %s", (path, takes) => {
  expect(takesReading(path)).toBe(takes);
});
