/** The bounds of a record, as the server has them; a test holds them against `crates/rules/src/record`. */
export const MAX_NAME_CHARS = 255;
export const MAX_TEMPLATE_BYTES = 16 * 1024;
export const MAX_COMMAND_BYTES = 32 * 1024;
export const MAX_SOURCE_BYTES = 32 * 1024;
export const MAX_INVOCATIONS = 100;
export const MAX_TIMEOUT_MS = 10_000;
export const DEFAULT_TIMEOUT_MS = 5_000;
/** The text that stands for a secret: sent back, it means the one that is kept. */
export const MASK = "********";
/** Priorities are 32 bits wide. */
export const MIN_PRIORITY = -(2 ** 31);
export const MAX_PRIORITY = 2 ** 31 - 1;

/** Whether a text is a whole number between two, both counted. Pure. */
export const isBetween = (text: string, low: number, high: number): boolean => text.trim() !== "" && Number.isInteger(Number(text)) && Number(text) >= low && Number(text) <= high;
