/** What tells things apart that are called the same. */

export interface Named {
  readonly key: string;
  readonly name: string;
  /** When it happened, as people read it. */
  readonly when: string;
}

/** How many signs of a key are shown: the last ones differ. */
const SIGNS = 6;

/** What stands behind the names of those that are called the same, by their keys: when they happened, and the end of the key where that is the same, too. Pure. */
export function toldApart(all: readonly Named[]): ReadonlyMap<string, string> {
  const names = new Map<string, number>();
  const moments = new Map<string, number>();
  const moment = ({ name, when }: Named): string => JSON.stringify([name, when]);
  for (const one of all) {
    names.set(one.name, (names.get(one.name) ?? 0) + 1);
    moments.set(moment(one), (moments.get(moment(one)) ?? 0) + 1);
  }
  const same = all.filter(({ name }) => (names.get(name) ?? 0) > 1);
  return new Map(same.map((one) => [one.key, (moments.get(moment(one)) ?? 0) > 1 ? `${one.when} · ${one.key.slice(-SIGNS)}` : one.when]));
}

/** What writes a moment to the second: two calls of a program are often a second apart. */
export const toTheSecond = (language: string): Intl.DateTimeFormat => new Intl.DateTimeFormat(language, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
