import { expect, test } from "vitest";

import { entryOf, opened } from "./opened-rows.ts";

test("a row is known by the entry of the history that it was opened from", () => {
  opened.put(entryOf({ __TSR_key: "a", __TSR_index: 3 }), "/hooks/1");
  opened.put(entryOf({ __TSR_key: "b" }), "/turns/2");
  opened.put(entryOf({ __TSR_key: "a" }), "/hooks/3");
  opened.put(entryOf(null), "/hooks/4");
  expect(["a", "b", "c"].map((key) => opened.of(entryOf({ __TSR_key: key })))).toEqual(["/hooks/3", "/turns/2", undefined]);
  expect(opened.of(entryOf(undefined))).toBeUndefined();
  for (let at = 0; at < 60; at += 1) {
    opened.put(`more ${at}`, "/hooks/5");
  }
  expect([opened.of("a"), opened.of("more 59")]).toEqual([undefined, "/hooks/5"]);
});
