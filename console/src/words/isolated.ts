/** Names within sentences: a name that turns the direction of a text turns only itself. Pure. */

/** What has a direction of its own, or changes that of its neighbours. */
const TURNS = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

/** Begins and ends what stands for itself. What a name opens in it and does not close ends with it; an end too many would end it early. */
const [FIRST, LAST] = ["\u2068", "\u2069"];

const bounded = (text: string): string => (TURNS.test(text) && !text.startsWith(FIRST) ? `${FIRST}${text.replaceAll(LAST, "")}${LAST}` : text);
const boundedOf = (value: unknown): unknown => (typeof value === "string" ? bounded(value) : Array.isArray(value) ? value.map(boundedOf) : value);

/** The texts of a catalogue, in which every name has its bounds. */
export function isolated<Texts>(texts: Texts): Texts {
  if (typeof texts === "function") {
    const say = texts as unknown as (...names: unknown[]) => unknown;
    return ((...names: unknown[]) => say(...names.map(boundedOf))) as unknown as Texts;
  }
  if (Array.isArray(texts)) {
    return texts.map(isolated) as unknown as Texts;
  }
  return typeof texts === "object" && texts !== null ? (Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, isolated(text)])) as Texts) : texts;
}
