import { kindOf } from "../wire/kind.ts";

/** A message that is said anew: its place, and how many messages there were when somebody began to edit it. */
export interface Edited {
  readonly place: number;
  readonly of: number;
  /** When it was said. */
  readonly at?: string;
}

/** Whether an edited message was not taken because the conversation went on while it was written. */
export const wentOn = (why: unknown): boolean => kindOf(why) === "conversation_changed";
