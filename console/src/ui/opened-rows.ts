/** How many openings are remembered. */
const MOST = 50;

/** Which row was opened last from which entry of the history. */
class OpenedRows {
  readonly #all = new Map<string, string>();

  put(entry: string | undefined, href: string): void {
    if (entry === undefined) {
      return;
    }
    this.#all.delete(entry);
    this.#all.set(entry, href);
    const [oldest] = this.#all.keys();
    if (this.#all.size > MOST && oldest !== undefined) {
      this.#all.delete(oldest);
    }
  }

  of(entry: string | undefined): string | undefined {
    return entry === undefined ? undefined : this.#all.get(entry);
  }
}

export const opened = new OpenedRows();

/** The name that the router gives an entry of the history: it is the same when somebody comes back. Pure. */
export function entryOf(state: unknown): string | undefined {
  const key = typeof state === "object" && state !== null && "__TSR_key" in state ? state.__TSR_key : undefined;
  return typeof key === "string" ? key : undefined;
}
