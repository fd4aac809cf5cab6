import { useWords } from "../words/use-words.ts";
import { Select } from "./field.tsx";

/** How far back somebody looks, in milliseconds. */
export const SPANS = { hour: 3_600_000, day: 86_400_000, week: 604_800_000 } as const;
export type Span = keyof typeof SPANS;
const NAMES = ["hour", "day", "week"] as const satisfies readonly Span[];

export const isSpan = (text: string | undefined): text is Span => text !== undefined && Object.hasOwn(SPANS, text);

/** When a span began. */
export const beginOf = (span: Span): string => new Date(Date.now() - SPANS[span]).toISOString();

/** Chooses how far back; `any` is what stands for no end, where that can be chosen. */
export function SpanSelect({ span, any, className = "w-auto!", choose }: { span: string; any?: string; className?: string; choose: (span: string) => void }) {
  const words = useWords().executions;
  return (
    <Select className={className} aria-label={words.time} value={span} onChange={(event) => choose(event.target.value)}>
      {any !== undefined && <option value="">{any}</option>}
      {NAMES.map((one) => (
        <option key={one} value={one}>
          {words.spans[one]}
        </option>
      ))}
    </Select>
  );
}
