import { clsx } from "./clsx.ts";
import { ExactBox } from "./exact.tsx";
import { json, shell } from "./highlight.ts";

/** A shell text or JSON in its colours, exactly. What is not coloured reads the same. */
export function Code({ text, language, label, className }: { text: string; language: "shell" | "json" | "plain"; label: string; className?: string }) {
  const parts = language === "plain" ? {} : { parts: language === "shell" ? shell(text) : json(text) };
  return <ExactBox text={text} label={label} className={clsx("max-h-100 border border-line bg-surface p-3", className)} {...parts} />;
}
