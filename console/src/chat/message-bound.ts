/** The longest message, in characters: a test holds it against the server. */
export const MAX_MESSAGE_CHARS = 32_000;

/** How many characters a message has that is too long, as the server counts them; nothing where it fits. Pure. */
export function tooLong(text: string): number | undefined {
  // A text has at least as many units as characters.
  const length = text.length > MAX_MESSAGE_CHARS ? [...text].length : 0;
  return length > MAX_MESSAGE_CHARS ? length : undefined;
}
