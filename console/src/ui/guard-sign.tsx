import type { GuardState } from "../wire/types.ts";
import { useLanguage, useWords } from "../words/use-words.ts";
import { Sign, type SignKind } from "./sign.tsx";
import { withMoments } from "./when.tsx";

export const GUARD_SIGNS: Readonly<Record<GuardState, SignKind>> = { armed: "allow", unproven: "ask", broken: "error", tripped: "tripped", disabled: "off" };

/** How a guard stands. */
export function GuardSign({ state }: { state: GuardState }) {
  const words = useWords().overview.guards;
  return <Sign kind={GUARD_SIGNS[state]} word={words[state]} />;
}

/** What a guard lacks, and why, in one line; empty where it lacks nothing. */
export function useLack(): (step: string | null, why: string | null) => string {
  const { rules, colon } = useWords();
  const language = useLanguage();
  const words = rules.steps;
  return (step, why) => [step === null ? "" : (words[step as keyof typeof words] ?? step), withMoments(why ?? "", language)].filter((text) => text !== "").join(colon);
}
