import { expect, test } from "vitest";

import { FOLDED_LINES, firstLines } from "./first-lines.ts";

const lines = (n: number): string => Array.from({ length: n }, (_, at) => `line ${at}`).join("\n");

test.each([1, FOLDED_LINES, FOLDED_LINES + 1])("%i lines are shown as they are", (n) => {
  expect(firstLines(`${lines(n)}\n`)).toEqual({ all: lines(n), first: lines(n), more: 0 });
});

test("what is longer is folded, and nothing of it is lost", () => {
  expect(firstLines(lines(20))).toEqual({ all: lines(20), first: lines(FOLDED_LINES), more: 20 - FOLDED_LINES });
});

test("an output may be nothing but line breaks, and hostile texts stay what they are", () => {
  expect(firstLines("\n\n")).toEqual({ all: "", first: "", more: 0 });
  const hostile = '<img src=x onerror="window.hit=1">';
  expect(firstLines(hostile).first).toBe(hostile);
});
