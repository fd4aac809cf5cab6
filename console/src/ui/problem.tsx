import { ConnectionError, RequestError } from "../wire/client.ts";
import { useIsConnected } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { adviceOf } from "./advice-of.ts";
import { Button } from "./button.tsx";
import { withLabel } from "./with-label.ts";

/** Something was not done: why, in the server's words, and what to do where that is known. That there is no connection is said
 * until there is one. `labels` are what fields of a form are called, by the names that the server has for them. */
export function Problem({ error, retry, labels = {} }: { error: unknown; retry?: (() => void) | undefined; labels?: Readonly<Record<string, string>> }) {
  const words = useWords();
  const isLost = error instanceof ConnectionError;
  const isBack = useIsConnected() && isLost;
  const advised = adviceOf(error);
  const said = isLost ? words.problem.lost : advised === "CREDENTIALS" ? words.problem.wrong : withLabel(error instanceof Error ? error.message : String(error), labels);
  return isBack ? null : (
    <div role="alert" className="my-2 rounded border-l-3 border-block bg-block-bg px-3 py-2">
      <p className="font-semibold text-block">{said}</p>
      {advised !== undefined && <p className="text-text">{words.problem.advice[advised]}</p>}
      {error instanceof RequestError && error.requestId !== undefined && (
        <p className="text-muted">
          {words.problem.request} <code>{error.requestId}</code>
        </p>
      )}
      {retry !== undefined && (
        <Button look="quiet" onClick={retry}>
          {words.problem.retry}
        </Button>
      )}
    </div>
  );
}
