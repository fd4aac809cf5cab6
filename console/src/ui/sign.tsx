import { clsx } from "./clsx.ts";

export type SignKind = "allow" | "block" | "ask" | "error" | "timeout" | "off" | "tripped";

const COLOURS: Record<SignKind, string> = {
  allow: "text-allow bg-allow-bg",
  block: "text-block bg-block-bg",
  ask: "text-ask bg-ask-bg",
  error: "text-fault bg-fault-bg",
  timeout: "text-fault bg-fault-bg",
  off: "text-muted bg-raised",
  tripped: "text-block bg-block-bg",
};

const DRAWINGS: Record<SignKind, string> = {
  allow: "M2.5 6.5 5 9l4.5-6",
  block: "m3 3 6 6m0-6-6 6",
  ask: "M4 4.2C4 2.9 5 2.2 6 2.2s2 .8 2 1.9C8 5.500 6 5.400 6 7.200M6 9.600v.2",
  error: "M6 2v5m0 2.600v.2",
  timeout: "M6 3v3.200l2 1.300M6 1.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9",
  off: "M6 2.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7",
  tripped: "M7 1 3 7h3l-1 4 4-6H6z",
};

/** A decision or a state: a sign and a word, in their colour; `wraps` where there may be less room than the word takes. */
export function Sign({ kind, word, wraps = false }: { kind: SignKind; word: string; wraps?: boolean }) {
  return (
    <span className={clsx("inline-flex w-fit items-center gap-1 rounded px-1.5 text-small leading-5 font-semibold", !wraps && "whitespace-nowrap", COLOURS[kind])}>
      <svg className="shrink-0" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true" fill="none" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" strokeLinejoin="round">
        <path d={DRAWINGS[kind]} />
      </svg>
      {word}
    </span>
  );
}
