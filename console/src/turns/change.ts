/** What a hook changed, as its record has it: a JSON Patch, of which some keep only the places. Pure. */

export interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

/** One place, and what a hook put there. */
export interface ChangedPlace {
  readonly place: string;
  readonly how: "add" | "remove" | "replace";
  /** What is there now; none where only the place is kept. */
  readonly value: string | undefined;
}

export const isOperation = (value: unknown): value is Operation =>
  typeof value === "object" && value !== null && typeof (value as Partial<Operation>).op === "string" && typeof (value as Partial<Operation>).path === "string";

const shownPlace = (path: string): string =>
  path
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(" › ");

export function changedPlaces(change: unknown): readonly ChangedPlace[] {
  return (Array.isArray(change) ? (change as unknown[]) : []).filter(isOperation).map(({ op, path, value }) => ({
    place: shownPlace(path),
    how: op === "add" || op === "remove" ? op : "replace",
    value: value === undefined ? undefined : typeof value === "string" ? value : JSON.stringify(value, null, 2),
  }));
}
