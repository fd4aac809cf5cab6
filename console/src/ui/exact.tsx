import { useCallback, useEffect, useRef, useState } from "react";

import { useWords } from "../words/use-words.ts";
import { Button } from "./button.tsx";
import { clsx } from "./clsx.ts";
import { hiddenIn, linesBelow, type Mark, marksInProse, marksOf, withMarks } from "./exact.ts";
import type { Part, PartKind } from "./highlight.ts";

const COLOURS: Readonly<Record<PartKind, string | undefined>> = {
  plain: undefined,
  command: "font-semibold text-accent",
  text: "text-allow",
  variable: "text-fault",
  sign: "font-semibold text-ask",
  comment: "text-muted italic",
  name: "text-accent",
  value: "text-fault",
};

function MarkView({ mark: { is, code, times } }: { mark: Mark }) {
  const words = useWords().exact;
  return (
    <span data-mark={is} className="rounded bg-ask-bg px-1 font-semibold whitespace-nowrap text-ask not-italic">
      {is === "hidden" ? words.hidden(code, times) : words[is](times)}
    </span>
  );
}

const onePart = (text: string): readonly Part[] => [{ kind: "plain", text }];

/** A foreign text in a line, exactly: what cannot be seen in it stands there as a mark. */
export function ExactText({ text, parts = onePart(text) }: { text: string; parts?: readonly Part[] }) {
  return withMarks(parts, marksOf(text)).map((one, at) =>
    one.kind === "mark" ? (
      <MarkView key={at} mark={one.mark} />
    ) : COLOURS[one.kind] === undefined ? (
      one.text
    ) : (
      <span key={at} className={COLOURS[one.kind]}>
        {one.text}
      </span>
    ),
  );
}

/** The same of what somebody writes to be read: blanks and emoji stand there as they are. */
export const ExactProse = ({ text }: { text: string }) => (
  <bdi>
    {withMarks(onePart(text), marksInProse(text)).map((one, at) => (one.kind === "mark" ? <MarkView key={at} mark={one.mark} /> : one.text))}
  </bdi>
);

/** Says that a text has characters that cannot be seen, where it has. */
export function HiddenNote({ texts }: { texts: readonly string[] }) {
  const words = useWords().exact;
  const { count, code } = hiddenIn(texts.flatMap(marksOf));
  return count === 0 ? null : (
    <p className="mb-1 border-l-3 border-ask px-2 text-ask" data-testid="hidden-characters">
      {words.note(count, code)}
    </p>
  );
}

interface About {
  readonly text: string;
  readonly parts?: readonly Part[];
  /** What it is called, or the id of what names it. */
  readonly label?: string;
  readonly labelledBy?: string;
  readonly className?: string;
}

/** A foreign text in a box that can be read with keys alone: exactly, with how much of it is below what is seen. */
export function ExactBox({ text, parts, label, labelledBy, className }: About) {
  const words = useWords().exact;
  const place = useRef<HTMLPreElement>(null);
  const [below, setBelow] = useState(0);
  const [isWhole, setIsWhole] = useState(false);
  const look = useCallback((): void => {
    const at = place.current;
    if (at !== null) {
      setBelow(linesBelow(at, Number.parseFloat(getComputedStyle(at).lineHeight) || 20));
    }
  }, []);
  useEffect(() => {
    const at = place.current;
    if (at === null) {
      return;
    }
    look();
    // It also has its height once something that was folded opens.
    const observer = new ResizeObserver(look);
    observer.observe(at);
    return () => observer.disconnect();
  }, [text, isWhole, look]);
  return (
    <div className="min-w-0">
      <HiddenNote texts={[text]} />
      <pre
        ref={place}
        tabIndex={0}
        role="region"
        aria-label={label}
        aria-labelledby={labelledBy}
        onScroll={look}
        className={clsx("overflow-auto rounded font-mono whitespace-pre-wrap", className ?? "max-h-64 border border-line bg-raised p-2", isWhole && "max-h-none!")}
      >
        <ExactText text={text} {...(parts === undefined ? {} : { parts })} />
      </pre>
      {below > 0 && (
        <Button look="quiet" className="text-left text-small whitespace-normal!" onClick={() => setIsWhole(true)}>
          {words.below(below)}
        </Button>
      )}
    </div>
  );
}
