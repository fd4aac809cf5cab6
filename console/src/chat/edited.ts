import { RequestError } from "../wire/client.ts";

/** A message that is said anew: its place, and how many messages there were when somebody began to edit it. */
export interface Edited {
  readonly place: number;
  readonly of: number;
  /** When it was said. */
  readonly at?: string;
}

/** Whether an edited message was not taken because the conversation went on while it was written. */
export function wentOn(why: unknown): boolean {
  const details = why instanceof RequestError ? why.details : undefined;
  return typeof details === "object" && details !== null && "kind" in details && details.kind === "conversation_changed";
}
