/** What records know of a conversation that was read from its history: what came of its calls, and why some were stopped. Pure. */

import { deciding, signOf } from "../turns/view.ts";
import type { TurnDetail } from "../wire/types.ts";
import { type CallItem, callKey, withCalls } from "./calls.ts";
import type { Item } from "./transcript.ts";

/** What came of a call: a hook stopped it, or it ran, well or not. */
export type Outcome = Pick<CallItem, "blocked" | "byHook" | "isError">;

/** What came of the calls of a turn, by the call. */
export function outcomesOf({ turn, spans }: TurnDetail): ReadonlyMap<string, Outcome> {
  const rounds = new Map<string, number[]>();
  for (const { toolCallId, round } of spans) {
    const known = rounds.get(toolCallId ?? "") ?? [];
    rounds.set(toolCallId ?? "", known.includes(round) ? known : [...known, round]);
  }
  // The name of a call comes once in a round.
  const later = (id: string, round: number): number => (rounds.get(id) ?? []).filter((other) => other > round).length;
  const ran = spans.filter(({ kind, toolCallId, result }) => kind === "call" && toolCallId !== undefined && result !== undefined);
  const inPlace = new Set(spans.flatMap(({ round, toolCallId, answeredByHook }) => (answeredByHook === true && toolCallId !== undefined ? [`${round} ${toolCallId}`] : [])));
  const stopped = spans.filter(({ toolCallId, ruling }) => toolCallId !== undefined && signOf(ruling) === "block");
  const keyOf = (id: string, round: number): string => callKey(turn.turnId, id, later(id, round));
  return new Map<string, Outcome>([
    ...ran.map(({ toolCallId: id = "", round, isError }): [string, Outcome] => [keyOf(id, round), { isError: isError === true, ...(inPlace.has(`${round} ${id}`) ? { byHook: true } : {}) }]),
    ...stopped.map((span): [string, Outcome] => {
      const hook = deciding(span);
      const id = span.toolCallId ?? "";
      return [keyOf(id, span.round), { blocked: { hookId: hook?.execution?.hookId ?? null, name: hook?.name ?? "", event: span.name, reason: hook?.reason ?? hook?.cause ?? hook?.faultDetail ?? span.text ?? "" } }];
    }),
  ]);
}

/** The items with what came of their calls, where they do not know it. */
export const withKnownOutcomes = (items: readonly Item[], outcomes: ReadonlyMap<string, Outcome>): readonly Item[] =>
  withCalls(items, outcomes, (call, outcome) => (call.blocked === undefined && call.isError === undefined ? { ...call, ...outcome } : call));
