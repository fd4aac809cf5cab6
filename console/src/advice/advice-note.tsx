import { useWords } from "../words/use-words.ts";
import type { Cause } from "./advice.ts";

/** A known cause of trouble, and its fix. */
export function AdviceNote({ cause }: { cause: Cause | undefined }) {
  const words = useWords().advice;
  if (cause === undefined) {
    return null;
  }
  return (
    <div className="my-2 rounded border-l-3 border-ask bg-ask-bg px-3 py-2" data-cause={cause}>
      <p className="font-semibold text-ask">{words[cause].cause}</p>
      <p>{words[cause].fix}</p>
    </div>
  );
}
