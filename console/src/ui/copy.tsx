import { useRef, useState } from "react";

import { useWords } from "../words/use-words.ts";
import { Button } from "./button.tsx";
import { Input } from "./field.tsx";

/** A text that can be read and copied. Where a browser does not let pages copy, it is selected instead. */
export function CopyField({ text, label, className = "" }: { text: string; label: string; className?: string }) {
  const words = useWords();
  const field = useRef<HTMLInputElement>(null);
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    field.current?.select();
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      setCopied(false);
    }
  };
  return (
    <span className={`flex gap-2 ${className}`}>
      <Input ref={field} readOnly aria-label={label} className="font-mono" value={text} onFocus={(event) => event.target.select()} />
      <Button onClick={() => void copy()}>{words.copy.action}</Button>
      <span role="status" className="sr-only">
        {copied ? words.copy.done : ""}
      </span>
      {copied && (
        <span aria-hidden="true" className="self-center text-allow">
          ✓
        </span>
      )}
    </span>
  );
}
