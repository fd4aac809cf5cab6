/** What a hook was given and what it left, as far as records tell: the call as the last hook left it, with the changes of
 * the hooks behind this one, and then its own, taken back. What stood in a place before is kept nowhere. Pure. */

import type { TurnHook, TurnSpan } from "../wire/types.ts";
import { isOperation, type Operation } from "./change.ts";

type Place = Record<string, unknown> | unknown[];

export interface Sides {
  readonly before: unknown;
  readonly after: unknown;
}

const steps = (path: string): string[] =>
  path
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));

const isPlace = (value: unknown): value is Place => typeof value === "object" && value !== null;
const has = (place: Place, name: string): boolean => Object.hasOwn(place, name);
const member = (place: Place, name: string): unknown => (Array.isArray(place) ? place[Number(name)] : place[name]);

/** The value that holds the place, and the name of the place in it. */
function holder(whole: unknown, path: string): readonly [Place, string] | undefined {
  const way = steps(path);
  const name = way.pop();
  const found = way.reduce<unknown>((value, step) => (isPlace(value) ? member(value, step) : undefined), whole);
  return name !== undefined && isPlace(found) ? [found, name] : undefined;
}

/** Takes an operation back; `unknown` stands where nobody knows what was there. */
function undo(whole: unknown, { op, path }: Operation, unknown: string): void {
  const [place, name] = holder(whole, path) ?? [undefined, ""];
  if (place === undefined) {
    return;
  }
  if (op === "add") {
    if (Array.isArray(place)) {
      place.splice(Number(name), 1);
    } else {
      Reflect.deleteProperty(place, name);
    }
  } else if (op === "remove" && Array.isArray(place)) {
    place.splice(Number(name), 0, unknown);
  } else if (op === "remove" || has(place, name)) {
    (place as Record<string, unknown>)[name] = unknown;
  }
}

const operations = ({ change }: TurnHook): readonly Operation[] => (Array.isArray(change) ? (change as unknown[]).filter(isOperation) : []);

/** Both sides of what `hook` changed of a call that passes the checkpoints `beside`; nothing where the call is not kept whole. */
export function sides(beside: readonly TurnSpan[], hook: TurnHook, unknown: string): Sides | undefined {
  // The last one to keep it has it as all of them left it.
  const kept = beside.findLast((span) => span.call !== undefined);
  const hooks = beside.flatMap((span) => span.hooks ?? []);
  const { call, tool } = kept ?? {};
  if (call?.arguments === undefined || operations(hook).length === 0) {
    return undefined;
  }
  const whole: unknown = structuredClone({ tool, arguments: call.arguments });
  const takeBack = (one: TurnHook): void => [...operations(one)].reverse().forEach((operation) => undo(whole, operation, unknown));
  hooks.slice(hooks.indexOf(hook) + 1).reverse().forEach(takeBack);
  const after = structuredClone((whole as { arguments: unknown }).arguments);
  takeBack(hook);
  return { before: (whole as { arguments: unknown }).arguments, after };
}
