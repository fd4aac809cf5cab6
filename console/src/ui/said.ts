/** A piece of a text: words, or what stands between backticks. */
export interface Piece {
  readonly text: string;
  readonly isCode: boolean;
}

/** A text with its names and commands, which stand between backticks. A single backtick is one. Pure. */
export function piecesOf(text: string): readonly Piece[] {
  return text
    .split(/(`[^`\n]+`)/)
    .filter((part) => part !== "")
    .map((part) => (part.length > 2 && part.startsWith("`") && part.endsWith("`") ? { text: part.slice(1, -1), isCode: true } : { text: part, isCode: false }));
}
