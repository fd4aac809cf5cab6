import type { HookEvent } from "../wire/types.ts";
import { atEvent, type Draft, EMPTY } from "./draft.ts";

/** What a template says with one event in mind: another event has other names and other members. */
const OF_ITS_EVENT = ["name", "matcher", "condition", "mayRewrite", "template", "source"] as const;

/**
 * A form whose event becomes another one. What a template wrote, and nobody touched, goes with the event of the template, and is
 * there again once that is chosen anew; what somebody typed stays. `began` is what the form began with. Pure.
 *
 * Another handler needs none of this: each has fields of its own, of which those of the chosen one are shown and sent.
 */
export function atOtherEvent(draft: Draft, began: Draft, event: HookEvent): Draft {
  const isBack = event === began.event;
  const [from, to] = isBack ? [EMPTY, began] : [began, EMPTY];
  const moves = event !== draft.event && (isBack || draft.event === began.event);
  const untouched = moves ? OF_ITS_EVENT.filter((member) => draft[member] === from[member]) : [];
  return { ...draft, ...atEvent(draft, event), ...Object.fromEntries(untouched.map((member) => [member, to[member]])), event };
}
