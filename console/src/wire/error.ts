/** Why the gateway did not do something, in its own words. */
export class WireError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly retryAfterMs?: number,
  ) {
    super(message);
    this.name = "WireError";
  }
}

/** The connection broke before the answer came. */
export const LOST = "CONNECTION_LOST";
