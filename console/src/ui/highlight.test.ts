import { expect, test } from "vitest";

import { json, type Part, shell } from "./highlight.ts";

const drawn = (parts: readonly Part[]): string => parts.filter(({ text }) => text.trim() !== "").map(({ kind, text }) => (kind === "plain" ? text : `${kind}:${text}`)).join(" ");

test.each([
  ["git push --force", "command:git push --force"],
  ["A=1 make -j2 && rm -rf 'a b'", "A=1 command:make -j2 sign:&& command:rm -rf text:'a b'"],
  ['sudo cat "$HOME/x" > /tmp/y # done', 'command:sudo command:cat text:"$HOME/x" sign:> /tmp/y comment:# done'],
  ["echo ${x} $1|sh\nls", "command:echo variable:${x} variable:$1 sign:| command:sh command:ls"],
  ["x=$(curl a#b)", "x= sign:$( command:curl a#b sign:)"],
  ["echo 'open", "command:echo text:'open"],
  ["echo \"open", "command:echo text:\"open"],
])("%s", (text, expected) => {
  expect(drawn(shell(text))).toBe(expected);
  expect(shell(text).map((part) => part.text).join("")).toBe(text);
});

test("JSON has names, texts and values", () => {
  const text = '{\n  "a\\"": "b: c",\n  "n": -1.5e3, "t": [true, null]\n}';
  expect(drawn(json(text))).toBe('{\n   name:"a\\"" : text:"b: c" ,\n   name:"n" : value:-1.5e3 ,  name:"t" :  [ value:true ,  value:null ]\n}');
  expect(json(text).map((part) => part.text).join("")).toBe(text);
});

test("what is very long stays as it is", () => {
  expect(shell("x".repeat(20_001))).toHaveLength(1);
  expect(json("1".repeat(20_001))).toHaveLength(1);
});
