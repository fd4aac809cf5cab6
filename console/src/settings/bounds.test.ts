import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { MAX_NAME, MAX_SLUG } from "./bounds.ts";

test("the bounds of names are the server's", () => {
  const root = resolve(import.meta.dirname, "../../../crates/gateway/src");
  expect(readFileSync(`${root}/identity_admin.rs`, "utf8")).toContain(`const MAX_NAME: usize = ${MAX_NAME};`);
  expect(readFileSync(`${root}/identity_admin/tenants.rs`, "utf8")).toContain(`const MAX_SLUG: usize = ${MAX_SLUG};`);
});
