import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";

import MarkdownText from "./markdown.tsx";

const shown = (text: string): string => renderToStaticMarkup(createElement(MarkdownText, { text })).replace(/^<div class="prose">|<\/div>$/g, "");

test.each([
  ["<script>alert(1)</script> and **bold**", "<p>&lt;script&gt;alert(1)&lt;/script&gt; and **bold**</p>"],
  ["one <b onclick=x>two</b>", "<p>one &lt;b onclick=x&gt;two&lt;/b&gt;</p>"],
  ["> <img src=x onerror=y>\n> after", "<blockquote>\n<p>&lt;img src=x onerror=y&gt;\nafter</p>\n</blockquote>"],
  ["**bold**", "<p><strong>bold</strong></p>"],
  ["`<b>`", "<p><code>&lt;b&gt;</code></p>"],
])("%s", (text, html) => {
  expect(shown(text)).toBe(html);
});
