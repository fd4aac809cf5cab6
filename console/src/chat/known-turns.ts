/** What records know of a conversation that was read from its history: which turn each message began, and why calls were
 * stopped. Pure. */

import { deciding, signOf } from "../turns/view.ts";
import type { TurnDetail, TurnLine } from "../wire/types.ts";
import { callKey, withCalls } from "./calls.ts";
import type { Blocked, Item } from "./transcript.ts";

/** Texts are compared by their beginnings: a list of turns has no more of a long one. */
const SAME_CHARS = 200;

const head = (text: string): string => text.trim().slice(0, SAME_CHARS);

/** The items with the turns that they began, where these are known: `turns` are the newest first. */
export function withKnownTurns(items: readonly Item[], turns: readonly TurnLine[]): readonly Item[] {
  const all = [...items];
  let next = 0;
  for (let at = all.length - 1; at >= 0; at -= 1) {
    const item = all[at];
    if (item?.kind !== "asked") {
      continue;
    }
    const known = turns.findIndex((turn, place) => place >= next && (item.runId === undefined ? turn.prompt !== null && head(turn.prompt) === head(item.text) : turn.turnId === item.runId));
    if (known >= 0) {
      all[at] = { ...item, runId: turns[known]?.turnId ?? "" };
      next = known + 1;
    }
  }
  return all;
}

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
