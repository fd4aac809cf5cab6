import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { zh } from "../words/zh.ts";
import { tooManyBytes, tooManyChars } from "./too-long.ts";

const ROOT = resolve(import.meta.dirname, "..");

test("a text that is too long says what fits and what it has, in characters as the server counts them", () => {
  expect(tooManyChars("\u{1f510}".repeat(4), 3, en.hooks.reasonLong)).toBe("At most 3 characters: this has 4.");
  expect(tooManyChars("\u{1f510}".repeat(4), 3, zh.hooks.reasonLong)).toBe("最多 3 个字符，现有 4 个。");
  expect(tooManyChars(" \u{1f510}\u{1f510}\u{1f510} ", 3, en.hooks.reasonLong)).toBeUndefined();
});

test("or in bytes", () => {
  expect(tooManyBytes("\u00e9\u00e9", 3, en.hooks.tooLong)).toBe("At most 3 bytes: this has 4.");
  expect(tooManyBytes("abc", 3, en.hooks.tooLong)).toBeUndefined();
});

test("no field cuts off what somebody pastes", () => {
  const files = readdirSync(ROOT, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tsx"));
  expect(files.length).toBeGreaterThan(50);
  expect(files.filter((name) => readFileSync(`${ROOT}/${name}`, "utf8").includes("maxLength"))).toEqual([]);
});
