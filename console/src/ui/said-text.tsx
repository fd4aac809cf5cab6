import { piecesOf } from "./said.ts";

/** What a hook, a rule or a person said: what stands between backticks is shown as code. */
export function SaidText({ text }: { text: string }) {
  return piecesOf(text).map((piece, at) => (piece.isCode ? <code key={at}>{piece.text}</code> : piece.text));
}
