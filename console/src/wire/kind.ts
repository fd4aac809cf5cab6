import { RequestError } from "./client.ts";

/** What kind of refusal it is, in the server's word for programs, where it sends one. Pure. */
export function kindOf(error: unknown): string | undefined {
  const details = error instanceof RequestError ? error.details : undefined;
  return typeof details === "object" && details !== null && "kind" in details && typeof details.kind === "string" ? details.kind : undefined;
}
