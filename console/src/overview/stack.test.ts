import { expect, test } from "vitest";

import { stacked } from "./stack.ts";

test("counts stand upon each other, and the highest is as high as there is room", () => {
  const at = "2026-01-01T00:00:00Z";
  expect(stacked([{ at, allowed: 3, blocked: 2, asked: 0, faults: 1 }])).toEqual({
    bars: [{ at, parts: [{ kind: "allowed", from: 0, count: 3 }, { kind: "faults", from: 3, count: 1 }, { kind: "blocked", from: 4, count: 2 }] }],
    top: 6,
  });
  expect(stacked([])).toEqual({ bars: [], top: 1 });
});
