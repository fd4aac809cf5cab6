import { expect, test } from "vitest";

import { toldApart } from "./apart.ts";

test("what is called the same is told apart by its second, and by its key where that is the same", () => {
  const all = [
    { key: "a:000001", name: "look", when: "10:00:01" },
    { key: "a:000002", name: "look", when: "10:00:02" },
    { key: "a:000003", name: "look", when: "10:00:02" },
    { key: "a:000004", name: "other", when: "10:00:02" },
  ];
  expect([...toldApart(all)]).toEqual([
    ["a:000001", "10:00:01"],
    ["a:000002", "10:00:02 · 000002"],
    ["a:000003", "10:00:02 · 000003"],
  ]);
});
