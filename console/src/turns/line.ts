import type { SignKind } from "../ui/sign.tsx";
import type { TurnLine } from "../wire/types.ts";

export type TurnState = "blocked" | "waiting" | "failed" | "faulted" | "asked" | "running" | "stopped" | "cut" | "passed";

const KINDS: Readonly<Record<TurnState, SignKind>> = { blocked: "block", waiting: "ask", failed: "error", faulted: "error", asked: "ask", running: "off", stopped: "off", cut: "off", passed: "allow" };

function stateOf(turn: TurnLine): TurnState {
  if (turn.ending === "waiting" || turn.ending === "running") {
    return turn.ending;
  }
  if (turn.blocked > 0) {
    return "blocked";
  }
  if (turn.ending !== "completed") {
    return turn.ending;
  }
  if (turn.faults > 0) {
    return "faulted";
  }
  return turn.asked > 0 ? "asked" : "passed";
}

/** What a turn in a listing came to. Pure. */
export function signOfLine(turn: TurnLine): { readonly kind: SignKind; readonly word: TurnState } {
  const word = stateOf(turn);
  return { kind: KINDS[word], word };
}

/** How long it took, if it ended; in milliseconds. */
export const tookOf = (turn: TurnLine): number | undefined => (turn.endedAt === null ? undefined : Math.max(0, Date.parse(turn.endedAt) - Date.parse(turn.startedAt)));
