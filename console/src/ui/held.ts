import { useState } from "react";

/** A list as somebody reads it: what comes in the meantime waits. */
export interface Held<Row> {
  readonly shown: readonly Row[];
  /** How many rows wait. */
  readonly newer: number;
  /** Shows them. */
  readonly show: () => void;
}

/** The rows of a list that is read: those that were there, as they are now, and how many came since. Where `keeps` says so,
 * a row stays that gave way to newer ones; else it is gone because it is no more. Pure. */
export function held<Row>(before: readonly Row[], now: readonly Row[], idOf: (row: Row) => string, keeps: boolean): Omit<Held<Row>, "show"> {
  const fresh = new Map(now.map((row) => [idOf(row), row]));
  const known = new Set(before.map(idOf));
  const shown = before.flatMap((row) => fresh.get(idOf(row)) ?? (keeps ? row : []));
  // Where nothing is read, nothing jumps.
  return shown.length === 0 ? { shown: now, newer: 0 } : { shown, newer: now.filter((row) => !known.has(idOf(row))).length };
}

export function useHeld<Row>(rows: readonly Row[], idOf: (row: Row) => string, keeps = false): Held<Row> {
  const [before, setBefore] = useState(rows);
  const now = held(before, rows, idOf, keeps);
  if (now.newer === 0 && now.shown !== before && now.shown.some((row) => !before.some((old) => idOf(old) === idOf(row)))) {
    setBefore(now.shown);
  }
  return { ...now, show: () => setBefore(rows) };
}
