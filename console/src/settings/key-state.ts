import type { ApiKey, CallerRole, KeyScope } from "../wire/types.ts";

export type KeyState = "good" | "expired" | "revoked";

/** Whether a key still lets anybody in. Pure. */
export function keyState(key: Pick<ApiKey, "expiresAt" | "revokedAt">, now: number): KeyState {
  if (key.revokedAt !== null) {
    return "revoked";
  }
  return key.expiresAt !== null && Date.parse(key.expiresAt) <= now ? "expired" : "good";
}

/** What a key may be for, with the role that it takes. Nobody gives more than they have. */
export const SCOPES: readonly (readonly [KeyScope, CallerRole])[] = [
  ["operator.read", "viewer"],
  ["operator.write", "operator"],
  ["operator.approvals", "operator"],
  ["operator.guard", "viewer"],
  ["operator.admin", "admin"],
];

/** How long a key may last, in days; 0 is without end. */
export const LASTS = [30, 90, 365, 0] as const;
