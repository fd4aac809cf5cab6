/** The longest reason of an answer, in bytes: a test holds it against the server. */
export const MAX_REASON_BYTES = 4096;

/** Reasons that somebody types and has not sent. In memory only: nothing of them stands anywhere else. */
const kept = new Map<string, string>();

/** Whose reason it is: that of a user in a tenant, about one call. */
export const reasonPlace = (me: { readonly user_id: string; readonly tenant_id: string }, approval: string): string => JSON.stringify([me.tenant_id, me.user_id, approval]);

/** Keeps a reason for when the call is there again, such as after a session ended. An empty one is forgotten. */
export function keepReason(place: string, reason: string): void {
  if (reason === "") {
    kept.delete(place);
  } else {
    kept.set(place, reason);
  }
}

export const keptReason = (place: string): string => kept.get(place) ?? "";

/** Whether a reason was typed and not sent yet. */
export const hasDrafts = (): boolean => kept.size > 0;
