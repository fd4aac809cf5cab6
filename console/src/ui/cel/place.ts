/** Where in a condition something is wrong. */

import { type Piece, read } from "./tokens.ts";

/** What the server says of a condition. */
export interface Said {
  readonly ok: boolean;
  readonly error?: string;
  readonly line?: number | null;
  readonly column?: number | null;
}

/** The offset of a column, which counts bytes of UTF-8 from 1. */
function offsetOf(line: string, column: number): number {
  const encoder = new TextEncoder();
  let [offset, bytes] = [0, 1];
  for (const letter of line) {
    bytes += encoder.encode(letter).length;
    if (bytes > column) {
      break;
    }
    offset += letter.length;
  }
  return offset;
}

/** How the server speaks of a name that cannot stand where it stands. It looks at names after it has read the text, and says no place. */
const NAMED = /unknown (?:variable|function|member of `shell`) `(\w+)`|`(\w+)` is (?:called as|not available)/g;

/** The piece of `text` that is to be marked for what was said of it. Nothing if it is good, or if nobody knows where. Pure. */
export function wrongIn(text: string, { ok, error, line, column }: Said): Pick<Piece, "from" | "to"> | null {
  if (ok) {
    return null;
  }
  const { pieces } = read(text);
  if (typeof line === "number") {
    const lines = text.split("\n");
    const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    const at = before + offsetOf(lines[line - 1] ?? "", column ?? 1);
    // At the end something is missing: what stands before it shows where.
    return pieces.find(({ to }) => at < to) ?? pieces.at(-1) ?? null;
  }
  const [, unknown, misused] = [...(error ?? "").matchAll(NAMED)].at(-1) ?? [];
  const name = unknown ?? misused;
  return pieces.find(({ from, to, kind }) => kind !== "string" && kind !== "comment" && text.slice(from, to) === name) ?? null;
}
