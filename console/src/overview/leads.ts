import type { Span } from "../ui/span.tsx";

/** The turns that a number of a hook counts, as the filters of their list: those of the same time. Pure. */
export const turnsOf = (hook: string, span: Span, decision?: string): Readonly<Record<string, string>> => ({ hook, span, ...(decision === undefined ? {} : { decision }) });
