import type { Claim } from "./connection.ts";

/** What was said to sign in. It is nowhere kept: whoever loads the page anew signs in anew. */
let said: Claim = {};

/** What is said in `connect`: nothing is enough on one's own machine. */
export const claim = (): Claim => said;

/** Signs in with the gateway token or an API key; the next connection says it. */
export function signIn(token: string, user: string): void {
  said = { token, ...(user === "" ? {} : { user_id: user }) };
}

/** Forgets it. */
export function signOut(): void {
  said = {};
}
