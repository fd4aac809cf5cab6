import type { TurnDetail } from "../wire/types.ts";
import { type Past, pastOf } from "./moments.ts";

/** Something that happened in a turn, with where. */
export interface PastEvent extends Past {
  readonly turn: string;
  /** Its bar in the turn; none where no hook was there to be asked. */
  readonly row: string | undefined;
  readonly at: string;
  /** What the user said, where that is what happened. */
  readonly text: string | undefined;
}

/** What happened in a turn that hooks are asked about again: its message and its calls, the last first. Of a call of which
 * the arguments are not kept nothing can be asked. Pure. */
export function pastEvents(detail: TurnDetail): readonly PastEvent[] {
  const { turn, spans } = detail;
  const calls = spans
    .filter(({ kind }) => kind === "call")
    .flatMap((span): PastEvent[] => {
      const past = pastOf(detail, span.id);
      return past?.input === undefined ? [] : [{ ...past, turn: turn.turnId, row: span.id, at: span.at ?? turn.startedAt, text: undefined }];
    });
  const message = turn.prompt === null ? [] : [messageOf(detail, turn.prompt)];
  return [...message, ...calls].reverse();
}

function messageOf(detail: TurnDetail, text: string): PastEvent {
  const { turn, spans } = detail;
  const row = spans.find(({ kind, name }) => kind === "checkpoint" && name === "user_prompt_submit")?.id;
  const past = row === undefined ? undefined : pastOf(detail, row);
  return { ...(past ?? { moment: "message", agent: turn.agentId, tool: "", input: undefined, hooks: new Map() }), turn: turn.turnId, row, at: turn.startedAt, text };
}
