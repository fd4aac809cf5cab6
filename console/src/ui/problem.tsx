import { ConnectionError, RequestError } from "../wire/client.ts";
import { useWords } from "../words/use-words.ts";
import { Button } from "./button.tsx";

/** Something was not done: why, in the server's words, and what to do. */
export function Problem({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  const words = useWords();
  const isLost = error instanceof ConnectionError;
  const code = isLost ? "CONNECTION_LOST" : error instanceof RequestError ? error.code : "INTERNAL";
  const advice = words.problem.advice[code as keyof typeof words.problem.advice] ?? words.problem.advice.INTERNAL;
  const said = isLost ? words.problem.lost : error instanceof Error ? error.message : String(error);
  return (
    <div role="alert" className="my-2 rounded border-l-3 border-block bg-block-bg px-3 py-2">
      <p className="font-semibold text-block">{said}</p>
      <p className="text-text">{advice}</p>
      {retry !== undefined && (
        <Button look="quiet" onClick={retry}>
          {words.problem.retry}
        </Button>
      )}
    </div>
  );
}
