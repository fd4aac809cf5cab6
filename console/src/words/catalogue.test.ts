import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

import ts from "typescript";
import { expect, test } from "vitest";

import { en } from "./en.ts";
import { languageOf } from "./language.ts";
import { zh } from "./zh.ts";

const ROOT = resolve(import.meta.dirname, "..");
/** Attributes that people read. */
const READ = ["title", "aria-label", "placeholder", "label", "hint", "alt", "about", "action", "answer"];
/** Names, units and signs that are the same in every language. */
const SAME = /^(\^\(exec\|write_file\)\$|tool_name == "exec" && size\(tool_input\.command\) > 80|pintle hooks add --starter|Pintle|ID|ms|HTTP|https:\/\/|haiku|5|:|·|–|✓|\.|,|\(|\)|\s)*$/;

function strangers(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const found: string[] = [];
  const check = (text: string): void => {
    if (!SAME.test(text)) {
      found.push(text);
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node)) {
      check(node.text.trim());
    }
    if (ts.isJsxAttribute(node) && READ.includes(node.name.getText()) && node.initializer !== undefined && ts.isStringLiteral(node.initializer)) {
      check(node.initializer.text);
    }
    const isRead = (): boolean => !ts.isJsxAttribute(node.parent) || READ.includes(node.parent.name.getText());
    if (ts.isJsxExpression(node) && isRead() && node.expression !== undefined && ts.isStringLiteralLike(node.expression)) {
      check(node.expression.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

test("no text stands outside of the catalogue", () => {
  const files = readdirSync(ROOT, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tsx"));
  const found = files.flatMap((name) => strangers(`${ROOT}/${name}`).map((text) => `${name}: ${text}`));
  expect(found).toEqual([]);
  // It reads every file, which takes a while where others work, too.
}, 60_000);

test("both languages have the same texts, and none is empty", () => {
  const shape = (words: unknown, path: string): string[] =>
    typeof words === "object" && words !== null ? Object.entries(words).flatMap(([name, value]) => shape(value, `${path}.${name}`)) : [`${path}: ${typeof words}`, ...(words === "" ? ["empty"] : [])];
  expect(shape(zh, "")).toEqual(shape(en, ""));
});

test.each([
  ["zh-CN", ["en"], "zh-CN"],
  [null, ["de", "zh-TW", "en"], "zh-CN"],
  [null, ["de"], "en"],
  ["fr", ["en-GB"], "en"],
])("%s and %j: %s", (chosen, browser, language) => {
  expect(languageOf(chosen, browser)).toBe(language);
});
