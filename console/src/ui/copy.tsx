import { useRef, useState } from "react";

import { useWords } from "../words/use-words.ts";
import { Button } from "./button.tsx";
import { Input } from "./field.tsx";

/** A text that can be read and copied. Where a browser does not let pages copy, it is selected instead. */
export function CopyField({ text, label, className = "" }: { text: string; label: string; className?: string }) {
  const words = useWords();
  const field = useRef<HTMLInputElement>(null);
  return (
    <span className={`flex gap-2 ${className}`}>
      <Input ref={field} readOnly aria-label={label} className="font-mono" value={text} onFocus={(event) => event.target.select()} />
      <CopyButton text={text} before={() => field.current?.select()}>
        {words.copy.action}
      </CopyButton>
    </span>
  );
}

/** Copies a text, and says that it did. Where a browser does not let pages copy, only `before` is done. */
export function CopyButton({ text, before, children }: { text: string; before?: () => void; children: string }) {
  const words = useWords();
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    before?.();
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      setCopied(false);
    }
  };
  return (
    <>
      <Button onClick={() => void copy()}>{children}</Button>
      <span role="status" className="sr-only">
        {copied ? words.copy.done : ""}
      </span>
      {copied && (
        <span aria-hidden="true" className="self-center text-allow">
          ✓
        </span>
      )}
    </>
  );
}
