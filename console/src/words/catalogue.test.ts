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
const SAME = /^(\^\(exec\|write_file\)\$|tool_name == "exec" && size\(tool_input\.command\) > 80|pintle hooks add --starter|Pintle|ID|⌘K|Ctrl-K|…|▾|▸|ms|HTTP|https:\/\/|5|:|·|–|✓|\.|,|\(|\)|\s)*$/;

/** Texts in expressions that people read: what a choice, a sum or a template may come to. */
function texts(node: ts.Expression): readonly string[] {
  if (ts.isStringLiteralLike(node)) {
    return [node.text];
  }
  if (ts.isTemplateExpression(node)) {
    return [node.head.text, ...node.templateSpans.flatMap((span) => [...texts(span.expression), span.literal.text])];
  }
  if (ts.isConditionalExpression(node)) {
    return [...texts(node.whenTrue), ...texts(node.whenFalse)];
  }
  if (ts.isBinaryExpression(node)) {
    const isSum = [ts.SyntaxKind.PlusToken, ts.SyntaxKind.BarBarToken, ts.SyntaxKind.QuestionQuestionToken].includes(node.operatorToken.kind);
    return [...(isSum ? texts(node.left) : []), ...(isSum || node.operatorToken.kind === ts.SyntaxKind.AmpersandAmpersandToken ? texts(node.right) : [])];
  }
  return ts.isParenthesizedExpression(node) || ts.isAsExpression(node) || ts.isNonNullExpression(node) ? texts(node.expression) : [];
}

/** Whether a text reads like a sentence or a name for people: words with blanks between, or Chinese. Names of classes, of
 * events and of settings do not. */
const isProse = (text: string): boolean => /[\u4e00-\u9fff]/.test(text) || /^[A-Z][a-z]+( [A-Za-z]+)+[.:?!…]?$/.test(text.trim());
function strangers(file: string, content: string): string[] {
  const source = ts.createSourceFile(file, content, ts.ScriptTarget.Latest, true, file.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS);
  const found = new Set<string>();
  const check = (text: string): void => {
    if (!SAME.test(text)) {
      found.add(text);
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
    if (ts.isJsxExpression(node) && isRead() && node.expression !== undefined) {
      texts(node.expression).forEach(check);
    }
    if ((ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) && isProse(node.text)) {
      found.add(node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return [...found];
}

test.each([
  ["a.tsx", "<p>Hello</p>", ["Hello"]],
  ["a.tsx", '<p>{isOn ? "On" : "Off"}</p>', ["On", "Off"]],
  ["a.tsx", "<p>{`${n} rules`}</p>", [" rules"]],
  ["a.tsx", '<p>{name || "nobody"}</p>', ["nobody"]],
  ["a.tsx", '<img alt={is && "a picture"} className="a b" data-kind="x" />', ["a picture"]],
  ["a.tsx", 'const all = [["title", "Not in the catalogue"]]', ["Not in the catalogue"]],
  ["a.ts", 'export const said = { title: "Nothing was found." };', ["Nothing was found."]],
  ["a.ts", "export const said = `Nothing was ${what}`", ["Nothing was "]],
  ["a.ts", 'throw new Error("there is a catalogue")', []],
  ["a.ts", 'const word = "规则"', ["规则"]],
])("%s: %s", (file, content, found) => {
  expect(strangers(file, content)).toEqual(found);
});

test("no text stands outside of the catalogue", () => {
  const files = readdirSync(ROOT, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".test.ts") && !/^words[/\\](en|zh|[a-z]+[.-](en|zh))\.ts$/.test(name));
  expect(files.length).toBeGreaterThan(100);
  const found = files.flatMap((name) => strangers(name, readFileSync(`${ROOT}/${name}`, "utf8")).map((text) => `${name}: ${text}`));
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
