import { expect, test } from "vitest";

import { withLabel } from "./with-label.ts";

test.each([
  ["userId has a character that is not seen", "User has a character that is not seen"],
  ["userId: too long", "User: too long"],
  ["userIds are many", "userIds are many"],
  ["slug is taken", "slug is taken"],
])("%s", (said, shown) => {
  expect(withLabel(said, { userId: "User" })).toBe(shown);
});
