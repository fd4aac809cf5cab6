import { ExactText } from "./exact.tsx";
import { piecesOf } from "./said.ts";

/** What a hook, a rule or a person said: what stands between backticks is shown as code. */
export function SaidText({ text }: { text: string }) {
  return (
    <bdi>
      {piecesOf(text).map((piece, at) =>
        piece.isCode ? (
          <code key={at}>
            <ExactText text={piece.text} />
          </code>
        ) : (
          <ExactText key={at} text={piece.text} />
        ),
      )}
    </bdi>
  );
}
