/** What hooks did in a turn, as a short list beside its message. Pure. */

import { all, type Family, type Row, type RowOf, tree } from "../turns/view.ts";

/** How many rows stand beside a message; the page of the turn has them all. */
const MOST = 100;

export interface HookRow extends Row {
  readonly of: Extract<RowOf, { kind: "hook" }>;
}

export interface TurnHooks {
  /** The hooks that ran or decided something without, in their order, those of sub-agents among them. */
  readonly rows: readonly HookRow[];
  /** How many more there are. */
  readonly more: number;
  /** How often a hook did not run, because it is about something else. */
  readonly skipped: number;
}

const isHook = (row: Row): row is HookRow => row.of.kind === "hook";

export function hooksOf(family: Family, most = MOST): TurnHooks {
  const rows = all(tree(family));
  const skipped = rows.flatMap(({ of }) => (of.kind === "skipped" ? of.hooks : []));
  const folded = new Set(skipped);
  const ran = rows.filter(isHook).filter(({ of }) => !folded.has(of.hook));
  return { rows: ran.slice(0, most), more: Math.max(0, ran.length - most), skipped: skipped.length };
}
