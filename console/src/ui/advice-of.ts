import { ConnectionError, RequestError } from "../wire/client.ts";

/** What can be advised, each with a text of its own. */
export type Advised =
  | "INVALID_REQUEST"
  | "UNAUTHORIZED"
  | "SCOPE"
  | "SIGN_IN"
  | "ENCRYPTION_KEY"
  | "CREDENTIALS"
  | "LINK"
  | "NOT_FOUND"
  | "FAILED_PRECONDITION"
  | "RESOURCE_EXHAUSTED"
  | "UNAVAILABLE"
  | "TENANT_ACCESS_REVOKED"
  | "CONNECTION_LOST"
  | "NO_PROVIDER"
  | "NO_MODEL"
  | "LIMIT"
  | "INTERNAL";

/** Failures of which the text says more than the code. */
const KNOWN: readonly (readonly [RegExp, Advised])[] = [
  [/there is no model provider/, "NO_PROVIDER"],
  [/^the agent `[^`]+` has no model/, "NO_MODEL"],
  [/iteration limit \d+ reached/, "LIMIT"],
  [/invalid or missing credentials/, "CREDENTIALS"],
  [/is beyond the scopes of this key/, "SCOPE"],
  [/^permission denied: \S+ requires signing in/, "SIGN_IN"],
  [/encryption key not configured/, "ENCRYPTION_KEY"],
  [/^the link was already used/, "LINK"],
];

/** Codes for which there is one thing to do, whatever it was about. */
const CODES: readonly Advised[] = ["INVALID_REQUEST", "NOT_FOUND", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "TENANT_ACCESS_REVOKED", "INTERNAL"];

/** What to do about a failure; nothing where nobody knows. Pure. */
export function adviceOf(error: unknown): Advised | undefined {
  if (error instanceof ConnectionError) {
    return "CONNECTION_LOST";
  }
  const said = error instanceof Error ? error.message : String(error);
  const known = KNOWN.find(([pattern]) => pattern.test(said));
  if (known !== undefined) {
    return known[1];
  }
  if (!(error instanceof RequestError)) {
    return undefined;
  }
  // What is refused for another reason than the role says so itself.
  if (error.code === "UNAUTHORIZED") {
    return /^permission denied|master tenant scope/.test(said) ? "UNAUTHORIZED" : undefined;
  }
  return CODES.find((code) => code === error.code);
}
