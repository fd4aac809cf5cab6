import { useState } from "react";

/** A list as somebody reads it: what comes in the meantime waits. */
export interface Held<Row> {
  readonly shown: readonly Row[];
  /** How many rows wait. */
  readonly newer: number;
  /** Whether the rows that are shown have another order by now. */
  readonly isMoved: boolean;
  /** Shows them. */
  readonly show: () => void;
}

/** The rows of a list that is read: those that were there, as they are now and in their old order, and how many came since. Where
 * `keeps` says so, a row stays that gave way to newer ones; else it is gone because it is no more. Pure. */
export function held<Row>(before: readonly Row[], now: readonly Row[], idOf: (row: Row) => string, keeps: boolean): Omit<Held<Row>, "show"> {
  const fresh = new Map(now.map((row) => [idOf(row), row]));
  const known = new Set(before.map(idOf));
  const shown = before.flatMap((row) => fresh.get(idOf(row)) ?? (keeps ? row : []));
  // Where nothing is read, nothing jumps.
  if (shown.length === 0) {
    return { shown: now, newer: 0, isMoved: false };
  }
  const stayed = shown.map(idOf).filter((id) => fresh.has(id));
  const order = now.map(idOf).filter((id) => known.has(id));
  return { shown, newer: now.length - order.length, isMoved: stayed.some((id, at) => id !== order[at]) };
}

interface How {
  /** Whether rows stay that gave way to newer ones. */
  readonly keeps?: boolean;
  /** What is asked for: of another question, no row is read yet. */
  readonly question?: string;
}

export function useHeld<Row>(rows: readonly Row[], idOf: (row: Row) => string, { keeps = false, question = "" }: How = {}): Held<Row> {
  const [read, setRead] = useState({ rows, question });
  const before = read.question === question ? read.rows : rows;
  const now = held(before, rows, idOf, keeps);
  const isFirst = now.newer === 0 && now.shown !== before && now.shown.some((row) => !before.some((old) => idOf(old) === idOf(row)));
  if (isFirst || read.question !== question) {
    setRead({ rows: now.shown, question });
  }
  return { ...now, show: () => setRead({ rows, question }) };
}
