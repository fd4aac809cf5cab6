/** Which call is which. A model names its calls, and such a name comes again: in later turns, and with some models within
 * one. So a call is known by its turn, its name, and how many calls of that name follow it in the turn: the end of a turn is
 * known to everybody, its beginning is not. Pure. */

import type { Approval } from "../wire/types.ts";
import type { Item } from "./transcript.ts";

export type CallItem = Extract<Item, { kind: "call" }>;

/** The key of the call `id` of the turn `run`, after which `later` others of that name came. */
export const callKey = (run: string | undefined, id: string, later: number): string => JSON.stringify([run ?? null, id, later]);

/** The turn of each item, where it is known. */
function runsOf(items: readonly Item[]): readonly (string | undefined)[] {
  let run: string | undefined;
  // A message that was said in the middle of a turn does not tell its turn: how many calls follow there is not known.
  const cut = new Set<string>();
  const runs = items.map((item) => {
    if (item.kind === "asked") {
      if (item.runId === undefined && run !== undefined) {
        cut.add(run);
      }
      run = item.runId;
    }
    return item.kind === "call" ? (item.runId ?? run) : run;
  });
  return runs.map((one) => (one !== undefined && cut.has(one) ? undefined : one));
}

/** The keys of the calls among the items; those of sub-agents, which are kept nowhere, have none. */
export function callKeys(items: readonly Item[]): readonly (string | undefined)[] {
  const runs = runsOf(items);
  const later = new Map<string, number>();
  const keys = items.map((): string | undefined => undefined);
  for (let at = items.length - 1; at >= 0; at -= 1) {
    const item = items[at];
    if (item?.kind === "call" && item.below === undefined) {
      const name = callKey(runs[at], item.id, 0);
      const n = later.get(name) ?? 0;
      later.set(name, n + 1);
      keys[at] = callKey(runs[at], item.id, n);
    }
  }
  return keys;
}

const read = (key: string): readonly [string | null, string, number] => JSON.parse(key) as [string | null, string, number];

/** The items with what is known of their calls, by the call. Where the turn of a call is not known, its name has to be the
 * only one, here and there: nothing is better than what is another call's. */
export function withCalls<Known>(items: readonly Item[], known: ReadonlyMap<string, Known>, put: (call: CallItem, known: Known) => Item): readonly Item[] {
  const keys = callKeys(items);
  const named = (id: string): readonly Known[] => [...known].filter(([key]) => read(key)[1] === id).map(([, one]) => one);
  return items.map((item, at) => {
    const key = keys[at];
    if (item.kind !== "call" || key === undefined) {
      return item;
    }
    let found = known.get(key);
    if (found === undefined && read(key)[0] === null && items.filter((other) => other.kind === "call" && other.id === item.id).length === 1) {
      const all = named(item.id);
      found = all.length === 1 ? all[0] : undefined;
    }
    return found === undefined ? item : put(item, found);
  });
}

const sameArguments = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** The items with what people answered about their calls. */
export function withAnswers(items: readonly Item[], approvals: readonly Approval[]): readonly Item[] {
  const decided = approvals.filter(({ state }) => state === "approved" || state === "used" || state === "refused");
  if (decided.length === 0) {
    return items;
  }
  const runs = runsOf(items);
  return items.map((item, at) => {
    const run = runs[at];
    if (item.kind !== "call" || item.below !== undefined || run === undefined) {
      return item;
    }
    const isTwin = items.some((other, place) => place !== at && other.kind === "call" && other.id === item.id && runs[place] === run);
    const found = decided.find((one) => one.turn_id === run && one.tool_call_id === item.id && (!isTwin || sameArguments(one.arguments, item.input)));
    return found === undefined ? item : { ...item, answered: found };
  });
}

/** Whether nothing came of a call yet. */
const isOpen = (item: Item): item is CallItem => item.kind === "call" && item.below === undefined && item.result === undefined && item.blocked === undefined;

/** The items without the calls that wait for a person: their approvals stand for them, with what the calls ask for. Whoever may
 * see no approvals knows of those that they heard of. */
export function withoutWaiting(items: readonly Item[], approvals: readonly Approval[]): readonly Item[] {
  const runs = runsOf(items);
  const known = approvals.flatMap(({ state, tool_call_id: call, turn_id: runId }) => (state === "waiting" ? [{ call, runId }] : []));
  const heard = items.flatMap((item) => (item.kind === "approval" && item.state === "waiting" && item.call !== undefined ? [{ call: item.call, runId: item.runId }] : []));
  const all = [...known, ...heard];
  const waits = (item: CallItem, run: string | undefined): boolean => all.some(({ call, runId }) => call === item.id && (run === undefined || runId === run));
  const inputs = new Map(items.flatMap((item, at) => (isOpen(item) && item.input !== undefined && waits(item, runs[at]) ? [[item.id, item.input] as const] : [])));
  return items.flatMap((item, at): readonly Item[] => {
    if (isOpen(item) && waits(item, runs[at])) {
      return [];
    }
    const input = item.kind === "approval" && item.state === "waiting" && item.call !== undefined ? inputs.get(item.call) : undefined;
    return [item.kind === "approval" && input !== undefined ? { ...item, input } : item];
  });
}

/** The items of a turn that waits, where nobody knows for which call: no call of it is said to run, and the only one that is open is the one. */
export function withUnknownWaiting(items: readonly Item[]): readonly Item[] {
  const last = items.findLastIndex(({ kind }) => kind === "asked");
  const open = items.filter((item, at) => at > last && isOpen(item));
  return items.map((item, at) => (at > last && isOpen(item) ? { ...item, held: open.length === 1 ? "waits" : "unknown" } : item));
}
