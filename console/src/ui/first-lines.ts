/** How many lines of an output are shown before somebody unfolds it. */
export const FOLDED_LINES = 8;

/** The first lines of a text, and how many more there are; line breaks at its end count for nothing. */
export function firstLines(text: string): { readonly all: string; readonly first: string; readonly more: number } {
  const all = text.replace(/\n+$/, "");
  const lines = all.split("\n");
  // A fold that hides one line saves nothing.
  const more = lines.length > FOLDED_LINES + 1 ? lines.length - FOLDED_LINES : 0;
  return { all, first: more === 0 ? all : lines.slice(0, FOLDED_LINES).join("\n"), more };
}
