/** A length of time of which only whole milliseconds are kept. Pure. */
export const wholeMs = (ms: number): string => (ms === 0 ? "< 1 ms" : `${ms} ms`);

/** A length of time as people read it: the unit that fits, in three digits. Pure. */
export function took(ms: number): string {
  if (ms < 1) {
    return `${Math.round(ms * 1000)} µs`;
  }
  if (ms < 1_000) {
    return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  }
  if (ms < 60_000) {
    return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  }
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
}
