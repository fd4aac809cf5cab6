/** What somebody may do: their role says it, and the scopes of the key that they came with, which may take some of it away. Pure. */

import type { Welcome } from "./client.ts";
import { type CallerRole, type KeyScope, ROLES } from "./types.ts";

type Who = Pick<Welcome, "role" | "scopes">;

/** The scopes that pages need, each with the role from which on it counts. */
const NEEDED: readonly (readonly [KeyScope, CallerRole])[] = [
  ["operator.read", "viewer"],
  ["operator.write", "operator"],
  ["operator.approvals", "operator"],
];

export const hasRole = ({ role }: Pick<Who, "role">, least: CallerRole): boolean => ROLES.indexOf(role) >= ROLES.indexOf(least);

/** Whether somebody has at least this role, and nothing takes this scope away from them. */
export const mayAs = (who: Who, least: CallerRole, scope?: KeyScope): boolean => hasRole(who, least) && (scope === undefined || who.scopes.includes(scope));

/** What a role has, and its key or its being nobody takes away. */
export const missingScopes = (who: Who): readonly KeyScope[] => NEEDED.filter(([scope, least]) => hasRole(who, least) && !who.scopes.includes(scope)).map(([scope]) => scope);

/** The parts of the address under which nothing is read that takes a scope. */
const OPEN = /^\/(approvals|settings)(\/|$)/;

/** Whether the page at an address takes the scope to look. */
export const takesReading = (path: string): boolean => !OPEN.test(path);
