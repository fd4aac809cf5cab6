import { expect, test } from "vitest";

import { focusAfter } from "./focus.ts";

const there = { isConnected: true };
const gone = { isConnected: false };
const page = { isConnected: true };

test("the focus goes back to what opened something, and to the page where that is gone", () => {
  expect(focusAfter(there, page)).toBe(there);
  expect(focusAfter(gone, page)).toBe(page);
  expect(focusAfter(gone, null)).toBeNull();
  // Where nothing had the focus, nothing gets it.
  expect(focusAfter(null, page)).toBeNull();
});
