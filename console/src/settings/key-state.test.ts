import { expect, test } from "vitest";

import { keyState } from "./key-state.ts";

const NOW = Date.parse("2026-01-02T00:00:00Z");

test.each([
  [null, null, "good"],
  ["2026-01-03T00:00:00Z", null, "good"],
  ["2026-01-02T00:00:00Z", null, "expired"],
  ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "revoked"],
] as const)("until %s, revoked %s: %s", (expiresAt, revokedAt, state) => {
  expect(keyState({ expiresAt, revokedAt }, NOW)).toBe(state);
});
