import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { SpokenContext } from "../words/use-words.ts";
import MarkdownText from "./markdown.tsx";

test("what cannot be seen in an answer stands there as its code", () => {
  const words = { language: "en" as const, words: en };
  const html = renderToStaticMarkup(createElement(SpokenContext, { value: words }, createElement(MarkdownText, { text: "one **two\u202Ethree** `f\u200Bg` ❤\uFE0F" })));
  expect(html).not.toMatch(/[\u202E\u200B]/);
  expect(html).toContain("U+202E");
  expect(html).toContain("U+200B");
  expect(html).toContain("❤\uFE0F");
});
