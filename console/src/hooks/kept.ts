import type { Draft } from "./draft.ts";

/** What was typed and not saved, by whose form it is. In memory only: a draft may hold a secret. */
const kept = new Map<string, Draft>();

/** Whose form it is: that of a user in a tenant, for a hook or for a new one. */
export const placeOf = (me: { readonly user_id: string; readonly tenant_id: string }, hook: string): string => JSON.stringify([me.tenant_id, me.user_id, hook]);

/** Keeps a draft for when the form is there again, such as after a session ended. */
export function keep(place: string, draft: Draft): void {
  kept.set(place, structuredClone(draft));
}

export const keptDraft = (place: string): Draft | undefined => kept.get(place);

export function drop(place: string): void {
  kept.delete(place);
}

/** Whether something was typed and not saved yet. */
export const hasDrafts = (): boolean => kept.size > 0;
