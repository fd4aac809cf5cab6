/** What was typed in forms and not sent, by whose form it is. In memory only: a draft may hold what is secret. */
const kept = new Map<string, unknown>();

/** Whose draft it is: that of a user in a tenant, in the form of this name. */
export const formPlace = (me: { readonly user_id: string; readonly tenant_id: string }, form: string): string => JSON.stringify([me.tenant_id, me.user_id, form]);

/** Keeps what was typed for when the form is there again, such as after a session ended. What the form began with is forgotten. */
export function keepTyped<Typed>(place: string, typed: Typed, began: Typed): void {
  if (JSON.stringify(typed) === JSON.stringify(began)) {
    kept.delete(place);
  } else {
    kept.set(place, structuredClone(typed));
  }
}

/** What was typed there; the form that asks is the one that kept it. */
export const keptTyped = <Typed>(place: string): Typed | undefined => kept.get(place) as Typed | undefined;

export function dropTyped(place: string): void {
  kept.delete(place);
}

/** Whether something was typed and not sent yet. */
export const hasDrafts = (): boolean => kept.size > 0;
