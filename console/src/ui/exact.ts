/** A text exactly as it is: what cannot be seen in it, or turns its neighbours round, is found. Pure. */

import type { Part, PartKind } from "./highlight.ts";

/** A place in a text that is shown as a mark, with what it is and how often that stands there. */
export interface Mark {
  readonly from: number;
  readonly to: number;
  readonly is: "hidden" | "spaces" | "lines";
  /** The code of a hidden character. */
  readonly code: string;
  readonly times: number;
}

/** What is shown of a text: a piece of it, or a mark. */
export type Shown = { readonly kind: PartKind; readonly text: string } | { readonly kind: "mark"; readonly mark: Mark };

/** Empty lines push what follows out of sight from four on, blanks from twenty on; those that indent a line from sixty on.
 * Control and format characters, separators and what fonts ignore have no look of their own; a line may end as Windows ends it. */
const MARKS =
  /(?<lines>(?<=^|\n)(?:[ \t]*\r?\n){4,})|(?<spaces>(?<=[^ \t\n])[ \t]{20,}|[ \t]{60,})|(?<hidden>(?!\r\n)(?![\n\t ])[\p{Cc}\p{Cf}\p{Zs}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800])\k<hidden>*/gu;

/** Every mark in a text, in its order. */
export function marksOf(text: string): readonly Mark[] {
  return [...text.matchAll(MARKS)].map((found) => {
    const [all] = found;
    const { lines, spaces, hidden } = found.groups ?? {};
    const [from, to] = [found.index, found.index + all.length];
    if (hidden !== undefined) {
      return { from, to, is: "hidden", code: `U+${(hidden.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`, times: all.length / hidden.length };
    }
    const times = lines === undefined ? (spaces ?? "").length : lines.split("\n").length - 1;
    return { from, to, is: lines === undefined ? "spaces" : "lines", code: "", times };
  });
}

const BLANK = /\p{Zs}/u;
const AFTER_EMOJI = /[\p{Emoji}\p{Emoji_Modifier}\ufe0f]$/u;
const EMOJI = /^\p{Extended_Pictographic}/u;

/** The marks in what people and models write to be read, as in a conversation: what is not seen, or turns its neighbours round.
 * Blanks of every width are seen there, and what emoji are made of shows in them. */
export function marksInProse(text: string): readonly Mark[] {
  const isOfEmoji = ({ from, to, code, times }: Mark): boolean =>
    times === 1 && AFTER_EMOJI.test(text.slice(Math.max(0, from - 2), from)) && (code === "U+FE0F" || (code === "U+200D" && EMOJI.test(text.slice(to))));
  return marksOf(text).filter((mark) => mark.is === "hidden" && !BLANK.test(text.charAt(mark.from)) && !isOfEmoji(mark));
}

/** A name with what is hidden in it as codes, for where only a text can stand. Pure. */
export function inCodes(name: string): string {
  const hidden = marksOf(name).filter(({ is }) => is === "hidden");
  return hidden.reduceRight((text, { from, to, code, times }) => `${text.slice(0, from)}[${code}${times > 1 ? ` ×${times}` : ""}]${text.slice(to)}`, name);
}

/** How many hidden characters there are, and the code of the first. */
export function hiddenIn(marks: readonly Mark[]): { readonly count: number; readonly code: string } {
  const hidden = marks.filter(({ is }) => is === "hidden");
  return { count: hidden.reduce((sum, { times }) => sum + times, 0), code: hidden[0]?.code ?? "" };
}

/** The parts of a text with the marks in their places: what a mark stands for is in no part any more. */
export function withMarks(parts: readonly Part[], marks: readonly Mark[]): readonly Shown[] {
  const shown: Shown[] = [];
  const left = [...marks];
  let at = 0;
  for (const { kind, text } of parts) {
    const end = at + text.length;
    const begin = at;
    while (at < end) {
      const [mark] = left;
      if (mark === undefined || mark.from >= end) {
        shown.push({ kind, text: text.slice(at - begin) });
        at = end;
        continue;
      }
      if (mark.from > at) {
        shown.push({ kind, text: text.slice(at - begin, mark.from - begin) });
      }
      if (mark.from >= at) {
        shown.push({ kind: "mark", mark });
      }
      at = Math.min(mark.to, end);
      if (mark.to <= end) {
        left.shift();
      }
    }
    at = end;
  }
  return shown;
}

/** How many lines of `lineHeight` are below what is seen of a box. */
export function linesBelow({ scrollHeight, scrollTop, clientHeight }: Pick<Element, "scrollHeight" | "scrollTop" | "clientHeight">, lineHeight: number): number {
  const below = scrollHeight - scrollTop - clientHeight;
  // Browsers round heights; what is less than that is nothing.
  return below <= 1 ? 0 : Math.max(1, Math.round(below / lineHeight));
}
