/** How near to the end somebody is who wants to stay there, in pixels. */
const NEAR_PX = 80;

/** What is seen of a conversation: from where, how much there is, and how much of it can be seen. */
export type Seen = Pick<Element, "scrollTop" | "scrollHeight" | "clientHeight">;

/** Whether the view stays at the end after it moved. Only a person takes it away from there: what grew only moves the end,
 * and what shrank, or more room, lets no more than as much of it go. Pure. */
export function follows(did: boolean, before: Seen, now: Seen): boolean {
  if (now.scrollHeight - now.scrollTop - now.clientHeight < NEAR_PX) {
    return true;
  }
  const shrank = Math.max(0, before.scrollHeight - now.scrollHeight);
  const room = Math.max(0, now.clientHeight - before.clientHeight);
  // Browsers round what they scroll to.
  return did && now.scrollTop >= before.scrollTop - shrank - room - 1;
}
