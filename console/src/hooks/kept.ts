import type { Draft } from "./draft.ts";
import type { Template } from "./templates.ts";

/** What was typed, and the template that it began with: what it is tried with comes from that. */
interface Kept {
  readonly draft: Draft;
  readonly template: Template | undefined;
  readonly isTyped: boolean;
}

/** What was typed and not saved, by whose form it is. In memory only: a draft may hold a secret. */
const kept = new Map<string, Kept>();

/** Whose form it is: that of a user in a tenant, for a hook or for a new one. */
export const placeOf = (me: { readonly user_id: string; readonly tenant_id: string }, hook: string): string => JSON.stringify([me.tenant_id, me.user_id, hook]);

/** Keeps a draft for when the form is there again, such as after a session ended; `began` is what its form began with. */
export function keep(place: string, draft: Draft, began: Draft, template?: Template): void {
  kept.set(place, { draft: structuredClone(draft), template, isTyped: isTyped(draft, began) });
}

export const keptDraft = (place: string): Draft | undefined => kept.get(place)?.draft;
export const keptTemplate = (place: string): Template | undefined => kept.get(place)?.template;

export function drop(place: string): void {
  kept.delete(place);
}

/** Whether something was typed and not saved yet. */
export const hasDrafts = (): boolean => [...kept.values()].some((one) => one.isTyped);

/** Whether `draft` is more than what its form began with, so that somebody would miss it. Pure. */
export const isTyped = (draft: Draft, began: Draft): boolean => JSON.stringify(draft) !== JSON.stringify({ ...draft, ...began });
