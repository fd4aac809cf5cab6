import { PintleClient } from "../wire/client.ts";
import { claim, exchange, hasSession, takeCode } from "../wire/session.ts";

/** The longest wait before a lost connection is tried again, in milliseconds. */
const LONGEST_WAIT_MS = 10_000;

/** Connects as whoever the kept session says. */
export function dial(): PintleClient {
  const made = new PintleClient(`${location.origin.replace(/^http/, "ws")}/ws`, { credentials: () => Promise.resolve(claim()), longestWaitMs: LONGEST_WAIT_MS });
  // What comes of it is its state.
  made.connect().catch(() => undefined);
  return made;
}

/** A connection, and what was wrong with the link that somebody came with. */
export interface Opened {
  readonly connection: PintleClient;
  readonly bad: unknown;
}

/** Connects: as whom the code of a link says, or else at once as who was here before. */
export function open(): Opened | Promise<Opened> {
  const code = takeCode();
  if (code === undefined) {
    return { connection: dial(), bad: undefined };
  }
  return exchange(code).then(
    () => ({ connection: dial(), bad: undefined }),
    // Whoever is signed in goes on as before: a link that was used already takes nothing away.
    (bad: unknown) => ({ connection: dial(), bad: hasSession() ? undefined : bad }),
  );
}
