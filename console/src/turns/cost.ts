/** What model calls cost, in dollars with all their digits. Pure. */

import type { Family } from "./view.ts";

/** The decimals that amounts come with, and those that are shown at least. */
const DECIMALS = 9;
const SHOWN = 2;

const nanos = (usd: string): bigint => {
  const [whole = "0", part = ""] = usd.split(".");
  return BigInt(whole) * 10n ** BigInt(DECIMALS) + BigInt(part.padEnd(DECIMALS, "0").slice(0, DECIMALS));
};

/** An amount without the zeros at its end that say nothing. */
export function amount(usd: string): string {
  const digits = nanos(usd).toString().padStart(DECIMALS + 1, "0");
  const part = digits.slice(-DECIMALS);
  return `${digits.slice(0, -DECIMALS)}.${part.slice(0, SHOWN)}${part.slice(SHOWN).replace(/0+$/, "")}`;
}

/** What the model calls of a turn and those of its sub-agents cost, and whether that is all; nothing where no price is known of any. */
export function cost({ turn, subAgents }: Family): { readonly usd: string; readonly isWhole: boolean } | undefined {
  const all = [turn, ...subAgents];
  const known = all.flatMap(({ costUsd }) => (costUsd === undefined ? [] : [nanos(costUsd)]));
  if (known.length === 0) {
    return undefined;
  }
  const sum = known.reduce((one, two) => one + two, 0n).toString().padStart(DECIMALS + 1, "0");
  const isWhole = all.every(({ spans, truncated }) => !truncated && spans.every(({ kind, costUsd }) => kind !== "model" || costUsd !== undefined));
  return { usd: amount(`${sum.slice(0, -DECIMALS)}.${sum.slice(-DECIMALS)}`), isWhole };
}
