import { expect, test } from "vitest";

import { follows, type Seen } from "./follow.ts";

const seen = (scrollTop: number, scrollHeight: number, clientHeight = 500): Seen => ({ scrollTop, scrollHeight, clientHeight });

test.each([
  ["what grew by more than a little moves the end, not the person", true, seen(500, 1_000), seen(500, 1_300), true],
  ["what shrank lets the browser scroll back", true, seen(500, 1_000), seen(400, 900, 400), true],
  ["more room lets it scroll back, too", true, seen(500, 1_000, 450), seen(450, 1_100, 500), true],
  ["a person who scrolls up stays there", true, seen(500, 1_000), seen(380, 1_000), false],
  ["and while an answer grows", true, seen(500, 1_000), seen(400, 1_040), false],
  ["a person who reads above is not taken to the end", false, seen(100, 1_000), seen(100, 1_300), false],
  ["nor where they scroll down a little", false, seen(100, 1_000), seen(300, 1_000), false],
  ["whoever scrolls back to the end stays there again", false, seen(100, 1_000), seen(450, 1_000), true],
] as const)("%s", (_, did, before, now, after) => {
  expect(follows(did, before, now)).toBe(after);
});
