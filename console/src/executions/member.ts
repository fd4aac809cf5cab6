import type { Words } from "../words/use-words.ts";

/** A member of the metadata of an execution in plain words, where it is one of Pintle's own. Pure. */
export function knownMember(name: string, value: unknown, words: Words): { readonly title: string; readonly value: string } | undefined {
  const titles: Readonly<Record<string, string>> = words.executions.metadata;
  const title = Object.hasOwn(titles, name) ? titles[name] : undefined;
  if (title === undefined) {
    return undefined;
  }
  if (typeof value === "boolean") {
    return { title, value: value ? words.test.yes : words.test.no };
  }
  const text = String(value);
  return { title, value: Object.hasOwn(words.decisions, text) ? words.decisions[text as keyof typeof words.decisions] : text };
}
