import { clsx } from "./clsx.ts";
import { json, type Part, type PartKind, shell } from "./highlight.ts";

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

/** A text in its colours. What is not coloured reads the same. */
function Parts({ parts }: { parts: readonly Part[] }) {
  return parts.map(({ kind, text }, at) =>
    COLOURS[kind] === undefined ? (
      text
    ) : (
      <span key={at} className={COLOURS[kind]}>
        {text}
      </span>
    ),
  );
}

/** A shell text or JSON in a box that can be read with keys alone. */
export function Code({ text, language, label, className }: { text: string; language: "shell" | "json" | "plain"; label: string; className?: string }) {
  return (
    <pre tabIndex={0} role="region" aria-label={label} className={clsx("max-h-100 overflow-auto rounded border border-line bg-surface p-3 whitespace-pre-wrap", className)}>
      {language === "plain" ? text : <Parts parts={language === "shell" ? shell(text) : json(text)} />}
    </pre>
  );
}
