import { expect, test } from "vitest";

import { changed } from "./changed.ts";

test.each([
  [[{ op: "replace", path: "/matcher", value: "x" }, { op: "replace", path: "/config/source" }, { op: "add", path: "/config/url" }], ["matcher", "config"]],
  [[{ op: "replace", path: "/version" }, { op: "replace", path: "/updated_at" }], []],
  [[{ op: "add", path: "", value: {} }, null, 7], []],
  [null, []],
  ["strange", []],
] as const)("%j: %j", (diff, names) => {
  expect(changed(diff)).toEqual(names);
});
