/** Parts of a text, each with what it is, so that it can be coloured. Pure. */

export type PartKind = "plain" | "command" | "text" | "variable" | "sign" | "comment" | "name" | "value";

export interface Part {
  readonly kind: PartKind;
  readonly text: string;
}

/** Longer texts are not coloured: nobody reads them for their colours. */
const MOST_CHARS = 20_000;

/** What a piece of a shell text begins with, longest first. Newlines end commands. */
const SHELL: readonly (readonly [PartKind | "space" | "newline" | "word", RegExp])[] = [
  ["newline", /\n/y],
  ["space", /[^\S\n]+/y],
  ["text", /'[^']*'?/y],
  ["text", /\$'(?:\\[\s\S]|[^'\\])*'?/y],
  ["text", /"(?:\\[\s\S]|[^"\\])*"?/y],
  ["variable", /\$(?:\{[^}]*\}?|[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])/y],
  ["sign", /\$\(\(?|&&|\|\||[;&|(){}`]+|[0-9]*[<>]+&?[0-9-]*/y],
  ["word", /(?:\\[\s\S]|[^\s'"$;&|(){}`<>\\])+/y],
  ["plain", /[\s\S]/y],
];

/** Words behind which a command stands. */
const KEYWORDS = ["if", "then", "else", "elif", "do", "while", "until", "!", "time", "sudo", "env", "exec", "nohup", "xargs"];
const isAssignment = (word: string): boolean => /^[A-Za-z_][A-Za-z0-9_]*=/.test(word);

/** A shell text: programs, quoted texts, variables, signs, comments. It is coloured, not understood. */
export function shell(text: string): readonly Part[] {
  if (text.length > MOST_CHARS) {
    return [{ kind: "plain", text }];
  }
  const parts: Part[] = [];
  let [at, isFirst, isAfterSpace] = [0, true, true];
  while (at < text.length) {
    if (isAfterSpace && text[at] === "#") {
      const end = text.indexOf("\n", at);
      parts.push({ kind: "comment", text: text.slice(at, end < 0 ? undefined : end) });
      at = end < 0 ? text.length : end;
      continue;
    }
    for (const [kind, pattern] of SHELL) {
      pattern.lastIndex = at;
      const piece = pattern.exec(text)?.[0];
      if (piece === undefined) {
        continue;
      }
      at += piece.length;
      isAfterSpace = kind === "space" || kind === "newline" || kind === "sign";
      if (kind === "space" || kind === "newline") {
        parts.push({ kind: "plain", text: piece });
        isFirst = kind === "newline" || isFirst;
      } else if (kind === "sign") {
        parts.push({ kind, text: piece });
        // Behind a redirection stands a file.
        isFirst = !/[<>]/.test(piece);
      } else if (kind === "word") {
        parts.push({ kind: isFirst && !isAssignment(piece) ? "command" : "plain", text: piece });
        isFirst = isFirst && (isAssignment(piece) || KEYWORDS.includes(piece));
      } else {
        parts.push({ kind, text: piece });
        isFirst = false;
      }
      break;
    }
  }
  return parts;
}

const JSON_PART = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** JSON: names, texts, other values. */
export function json(text: string): readonly Part[] {
  if (text.length > MOST_CHARS) {
    return [{ kind: "plain", text }];
  }
  const parts: Part[] = [];
  let at = 0;
  const plain = (to: number): void => {
    if (to > at) {
      parts.push({ kind: "plain", text: text.slice(at, to) });
    }
  };
  for (const found of text.matchAll(JSON_PART)) {
    plain(found.index);
    const [whole, quoted, colon] = found;
    if (quoted === undefined) {
      parts.push({ kind: "value", text: whole });
    } else {
      parts.push({ kind: colon === undefined ? "text" : "name", text: quoted });
      if (colon !== undefined) {
        parts.push({ kind: "plain", text: colon });
      }
    }
    at = found.index + whole.length;
  }
  plain(text.length);
  return parts;
}
