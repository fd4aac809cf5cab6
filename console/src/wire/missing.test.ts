import { expect, test } from "vitest";

import { ConnectionError, RequestError } from "./client.ts";
import { isMissing } from "./missing.ts";
import type { ErrorCode } from "./types.ts";

const refused = (code: ErrorCode, message: string): RequestError => new RequestError({ code, message });

test.each<[string, unknown, boolean]>([
  ["a hook that was deleted", refused("NOT_FOUND", "hook not found: 1"), true],
  ["an address that is none", refused("INVALID_REQUEST", "invalid hook ID"), true],
  ["a session key that is none, in whatever words", refused("INVALID_REQUEST", "no such key"), true],
  ["a role that may not", refused("UNAUTHORIZED", "invalid session key"), false],
  ["a server that cannot", refused("UNAVAILABLE", "hook not found"), false],
  ["a tenant that one may not see", refused("TENANT_ACCESS_REVOKED", "no access to this tenant"), false],
  ["a connection that is lost", new ConnectionError("gone", false), false],
  ["another error", new Error("invalid hook ID"), false],
  ["no error", null, false],
])("%s: missing? %s", (_, error, is) => {
  expect(isMissing(error)).toBe(is);
});
