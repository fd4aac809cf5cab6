import { type Draft, toRecord } from "./draft.ts";

export type Setting = keyof Draft;

/** Two changes of one hook, put together. */
export interface Merged {
  /** What is saved, with what one of them changed over what the other one did. */
  readonly draft: Draft;
  /** The settings in which that is not what the other one saved. */
  readonly mine: readonly Setting[];
  /** Those of them that the other one changed, too. */
  readonly both: readonly Setting[];
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/**
 * What somebody made of `base`, over what somebody else saved meanwhile: only what they touched is theirs, so that nothing that
 * the other one did goes by the way. What counts for nothing in the result, as a setting of another handler, is nobody's. Pure.
 */
export function merged(base: Draft, theirs: Draft, typed: Draft): Merged {
  const touched = (Object.keys(base) as Setting[]).filter((name) => !isSame(typed[name], base[name]));
  const draft: Draft = { ...theirs, ...Object.fromEntries(touched.map((name) => [name, typed[name]])) };
  const mine = touched.filter((name) => !isSame(toRecord(draft), toRecord({ ...draft, [name]: theirs[name] })));
  return { draft, mine, both: mine.filter((name) => !isSame(theirs[name], base[name])) };
}
