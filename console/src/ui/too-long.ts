/** How it is said that a text is too long: what fits, and what it has. */
type Say = (most: number, now: number) => string;

export const bytes = (text: string): number => new TextEncoder().encode(text).length;

/** What is said of a text with more than `most` characters, counted as the server does: without blanks around it. Nothing of it is cut off. Pure. */
export function tooManyChars(text: string, most: number, say: Say): string | undefined {
  const now = [...text.trim()].length;
  return now > most ? say(most, now) : undefined;
}

/** What is said of a text with more than `most` bytes. Nothing of it is cut off. Pure. */
export function tooManyBytes(text: string, most: number, say: Say): string | undefined {
  const now = bytes(text);
  return now > most ? say(most, now) : undefined;
}
