import { useId, useState } from "react";

import type { OutputHead } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";
import { Button } from "./button.tsx";
import { ExactBox } from "./exact.tsx";
import { firstLines } from "./first-lines.ts";

/** The beginning of what a command or a script wrote on one stream; long ones are folded. */
export function Output({ name, head }: { name: string; head: OutputHead | null | undefined }) {
  const words = useWords().output;
  const id = useId();
  const [isOpen, setIsOpen] = useState(false);
  if (head === null || head === undefined) {
    return null;
  }
  const { all, first, more } = firstLines(head.text);
  return (
    <div className="mt-3">
      <p className="mb-1">
        <span id={id} className="font-medium">
          {name}
        </span>
        {head.cut && <span className="text-muted"> {words.cut}</span>}
      </p>
      <ExactBox text={isOpen ? all : first} labelledBy={id} />
      {more > 0 && (
        <Button look="quiet" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? words.less : words.more(more)}
        </Button>
      )}
    </div>
  );
}
