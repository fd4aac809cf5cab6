/** What records know of a conversation that was read from its history: why calls were stopped. Pure. */

import { deciding, signOf } from "../turns/view.ts";
import type { TurnDetail } from "../wire/types.ts";
import { callKey, withCalls } from "./calls.ts";
import type { Blocked, Item } from "./transcript.ts";

/** Why calls of a turn were stopped, by the call. */
export function blocksOf({ turn, spans }: TurnDetail): ReadonlyMap<string, Blocked> {
  const rounds = new Map<string, number[]>();
  for (const { toolCallId, round } of spans) {
    const known = rounds.get(toolCallId ?? "") ?? [];
    rounds.set(toolCallId ?? "", known.includes(round) ? known : [...known, round]);
  }
  // The name of a call comes once in a round.
  const later = (id: string, round: number): number => (rounds.get(id) ?? []).filter((other) => other > round).length;
  const stopped = spans.filter(({ toolCallId, ruling }) => toolCallId !== undefined && signOf(ruling) === "block");
  return new Map(
    stopped.map((span) => {
      const hook = deciding(span);
      const id = span.toolCallId ?? "";
      return [callKey(turn.turnId, id, later(id, span.round)), { hookId: hook?.execution?.hookId ?? null, name: hook?.name ?? "", event: span.name, reason: hook?.reason ?? span.text ?? "" }];
    }),
  );
}

/** The items with why calls were stopped, where they do not know it. */
export const withKnownBlocks = (items: readonly Item[], blocks: ReadonlyMap<string, Blocked>): readonly Item[] =>
  withCalls(items, blocks, (call, blocked) => (call.blocked === undefined ? { ...call, blocked } : call));
