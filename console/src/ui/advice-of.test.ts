import { expect, test } from "vitest";

import { ConnectionError, RequestError } from "../wire/client.ts";
import type { ErrorCode } from "../wire/types.ts";
import { adviceOf } from "./advice-of.ts";

const refused = (code: ErrorCode, message: string): RequestError => new RequestError({ code, message });

test.each<[string, unknown, string | undefined]>([
  ["a connection that is lost", new ConnectionError("gone", false), "CONNECTION_LOST"],
  ["a role that may not", refused("UNAUTHORIZED", "permission denied: hooks.create requires admin role"), "UNAUTHORIZED"],
  ["a key without the scope", refused("UNAUTHORIZED", "permission denied: approvals.list is beyond the scopes of this key: it needs `operator.approvals`"), "SCOPE"],
  ["nobody who signed in", refused("UNAUTHORIZED", "permission denied: approvals.list requires signing in"), "SIGN_IN"],
  ["no key to encrypt with", refused("FAILED_PRECONDITION", "encryption key not configured"), "ENCRYPTION_KEY"],
  ["what changed meanwhile", refused("FAILED_PRECONDITION", "version 3 is not the newest"), "FAILED_PRECONDITION"],
  ["a wrong token", refused("UNAUTHORIZED", "unauthorized: invalid or missing credentials"), "CREDENTIALS"],
  ["a used link", refused("UNAUTHORIZED", "the link was already used, or is older than two minutes; create a new one"), "LINK"],
  ["a page of others", refused("UNAUTHORIZED", "a console session works only on this server's own pages"), undefined],
  ["no provider", refused("UNAVAILABLE", "there is no model provider"), "NO_PROVIDER"],
  ["no model", refused("UNAVAILABLE", "the agent `main` has no model"), "NO_MODEL"],
  ["a server that shuts down", refused("UNAVAILABLE", "the server is shutting down; retry shortly"), "UNAVAILABLE"],
  ["all rounds are used up", new Error("iteration limit 50 reached"), "LIMIT"],
  ["a turn that failed", new Error("HTTP 400: no such model"), undefined],
  ["a code without advice", refused("AGENT_TIMEOUT", "late"), undefined],
  ["a fault of the server", refused("INTERNAL", "oops"), "INTERNAL"],
])("%s", (_, error, advice) => {
  expect(adviceOf(error)).toBe(advice);
});
