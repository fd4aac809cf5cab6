import { expect, test } from "vitest";

import { isItself, SAFE, targetOf } from "./link-target.ts";

test.each([
  ["https://a.example/", "https://a.example", true],
  ["a@b.example", "mailto:a@b.example", true],
  ["https://bank.example", "https://evil.example", false],
  ["here", "https://a.example", false],
])("%s for %s: %s", (text, href, is) => {
  expect(isItself(text, href)).toBe(is);
});

test("of a long address the host stays whole", () => {
  expect(targetOf("https://a.example/b")).toBe("https://a.example/b");
  const host = `${"x".repeat(59)}.evil.example`;
  expect(targetOf(`https://${host}/${"y".repeat(100)}`)).toBe(`https://${host}/…`);
  expect(targetOf(`mailto:${"z".repeat(100)}`)).toBe("mailto:…");
  expect(SAFE.test("javascript:alert(1)")).toBe(false);
});
