import type { Edited } from "./edited.ts";

/** What was typed in a conversation and not taken yet. */
export interface ChatDraft {
  readonly text: string;
  readonly edited: Edited | undefined;
  /** The files that were handed over for it. */
  readonly media: readonly string[];
}

/** In memory only, until the message was taken or blocked: nothing that somebody typed stands anywhere else. */
const kept = new Map<string, ChatDraft>();

/** Whose draft it is: that of a user in a tenant, in a conversation. */
export const draftPlace = (me: { readonly user_id: string; readonly tenant_id: string }, session: string): string => JSON.stringify([me.tenant_id, me.user_id, session]);

/** Keeps a draft for when the conversation is there again, such as after a session ended. An empty one is forgotten. */
export function keepDraft(place: string, draft: ChatDraft): void {
  if (draft.text === "" && draft.media.length === 0) {
    kept.delete(place);
  } else {
    kept.set(place, draft);
  }
}

/** The message `text` was taken or blocked: it is no draft any more, unless something else was typed since. */
export function dropDraft(place: string, text: string): void {
  if (kept.get(place)?.text === text) {
    kept.delete(place);
  }
}

export const keptDraft = (place: string): ChatDraft | undefined => kept.get(place);

/** Whether something was typed and not taken yet. */
export const hasDrafts = (): boolean => kept.size > 0;
