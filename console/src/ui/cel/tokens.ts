/** What the pieces of a condition are. It is coloured, not understood: the server says what is wrong with it. */

import { type StreamParser, StringStream } from "@codemirror/language";

import { FUNCTIONS, TYPES, VALUES, VARIABLES } from "./names.ts";

/** Where the reading of a condition stands. */
export interface CelState {
  /** What ends the text that is open, if one is. */
  quote: string;
  /** In an open text, `\` is a letter like any other. */
  isRaw: boolean;
  /** The last thing was the point of a member. */
  isMember: boolean;
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*/;
const NUMBER = /^(?:0[xX][0-9a-fA-F]+[uU]?|(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[uU]?)/;
const TEXT = /^([bB][rR]?|[rR][bB]?)?("""|'''|"|')/;
const OPERATOR = /^(?:&&|\|\||[=!<>]=|[-+*/%<>!?:])/;

const has = (names: object, name: string): boolean => Object.hasOwn(names, name);

export const start = (): CelState => ({ quote: "", isRaw: false, isMember: false });

/** The rest of the text that is open, as far as it goes in this line. */
function text(stream: StringStream, state: CelState): string {
  while (!stream.eol()) {
    if (stream.match(state.quote)) {
      state.quote = "";
      break;
    }
    if (stream.next() === "\\" && !state.isRaw) {
      stream.next();
    }
  }
  return "string";
}

/** What a name is. */
function named(name: string, isMember: boolean, isCalled: boolean): string | null {
  if (isCalled && has(FUNCTIONS, name)) {
    return "variableName.function";
  }
  if (isMember) {
    return "propertyName";
  }
  if (name === "in") {
    return "keyword";
  }
  if (VALUES.includes(name)) {
    return "atom";
  }
  if (has(VARIABLES, name)) {
    return "variableName.special";
  }
  return TYPES.includes(name) ? "typeName" : "variableName";
}

/** The next piece, by the names that the editor has for kinds of pieces. */
export function token(stream: StringStream, state: CelState): string | null {
  if (state.quote !== "") {
    return text(stream, state);
  }
  if (stream.eatSpace()) {
    return null;
  }
  const { isMember } = state;
  state.isMember = false;
  if (stream.match("//")) {
    stream.skipToEnd();
    state.isMember = isMember;
    return "comment";
  }
  const begins = stream.match(TEXT);
  if (begins !== null && typeof begins === "object") {
    state.quote = begins[2] ?? "";
    state.isRaw = /r/i.test(begins[1] ?? "");
    return text(stream, state);
  }
  if (!isMember && stream.match(NUMBER)) {
    return "number";
  }
  if (stream.match(NAME)) {
    return named(stream.current(), isMember, stream.match(/^\s*\(/, false) !== null);
  }
  if (stream.match(/^`[^`]*`?/)) {
    return "propertyName";
  }
  if (stream.match(OPERATOR)) {
    return "operator";
  }
  state.isMember = stream.next() === ".";
  return state.isMember ? "operator" : "punctuation";
}

/** A piece, by its offsets in the whole. */
export interface Piece {
  readonly from: number;
  readonly to: number;
  readonly kind: string;
}

/** All pieces of a condition but the blanks, and whether a text or a comment is open at its end. Pure. */
export function read(condition: string): { readonly pieces: readonly Piece[]; readonly isOpen: boolean } {
  const state = start();
  const pieces: Piece[] = [];
  let [before, last]: [number, string | null] = [0, null];
  for (const line of condition.split("\n")) {
    const stream = new StringStream(line, 2, 2);
    last = null;
    while (!stream.eol()) {
      stream.start = stream.pos;
      last = token(stream, state);
      if (last !== null) {
        pieces.push({ from: before + stream.start, to: before + stream.pos, kind: last });
      }
    }
    before += line.length + 1;
  }
  return { pieces, isOpen: state.quote !== "" || last === "comment" };
}

export const parser: StreamParser<CelState> = {
  name: "cel",
  startState: start,
  copyState: (state) => ({ ...state }),
  token,
  languageData: { commentTokens: { line: "//" } },
};
