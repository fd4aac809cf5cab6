/** A line on both sides, or on one. */
export interface DiffLine {
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** Members sorted, so that order makes no difference. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(sorted);
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value as Record<string, unknown>);
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sorted(member)]));
  }
  return value;
}

/** JSON as lines that can be compared. */
export function lines(value: unknown): string[] {
  return (JSON.stringify(sorted(value), null, 2) ?? "").split("\n");
}

/** Longest texts that are compared line by line; longer ones stand side by side as they are. */
const MOST = 1_000;

/** What stands in both, and what in one. Lines that were replaced stand beside each other. */
export function diff(before: readonly string[], after: readonly string[]): DiffLine[] {
  if (before.length > MOST || after.length > MOST) {
    return paired([...before], [...after]);
  }
  // The longest common sequence of lines, from the end.
  const common = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  const at = (i: number, j: number): number => common[i]?.[j] ?? 0;
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      const row = common[i] as Uint16Array;
      row[j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const all: DiffLine[] = [];
  let [i, j] = [0, 0];
  let [gone, come]: [string[], string[]] = [[], []];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      all.push(...paired(gone, come), { before: before[i], after: after[j] });
      [gone, come] = [[], []];
      i += 1;
      j += 1;
    } else if (j >= after.length || (i < before.length && at(i + 1, j) >= at(i, j + 1))) {
      gone.push(before[i] as string);
      i += 1;
    } else {
      come.push(after[j] as string);
      j += 1;
    }
  }
  return [...all, ...paired(gone, come)];
}

function paired(gone: readonly string[], come: readonly string[]): DiffLine[] {
  return Array.from({ length: Math.max(gone.length, come.length) }, (_, at) => ({ before: gone[at], after: come[at] }));
}
