import { RequestError } from "./client.ts";

/**
 * Whether there is nothing at an address: what was asked for is not there, not one's own to see, or the address names nothing
 * that could be. Only for requests of which all params stand in the address: another mistake cannot be in them. Pure.
 */
export const isMissing = (error: unknown): boolean => error instanceof RequestError && (error.code === "NOT_FOUND" || error.code === "INVALID_REQUEST");
