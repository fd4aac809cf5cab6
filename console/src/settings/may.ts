import type { Welcome } from "../wire/client.ts";
import { mayAs } from "../wire/may.ts";
import type { CallerRole } from "../wire/types.ts";

/** What stands in the list of what one may do, each with a text of its own. */
export type MayWord = "read" | "talk" | "approve" | "try" | "change" | "seeAll" | "people" | "everywhere" | "global" | "tenants";

/** What a role may do whom no key limits. Pure. */
export const mayDoAs = (role: CallerRole): readonly MayWord[] => mayDo({ role, scopes: ["operator.read", "operator.write", "operator.approvals", "operator.admin"] }, true);

/** What somebody may do, by their role and what their key leaves of it; who did not sign in tries no hooks. Pure. */
export function mayDo(me: Pick<Welcome, "role" | "scopes">, signedIn: boolean): readonly MayWord[] {
  if (mayAs(me, "owner")) {
    return ["everywhere", "global", "tenants"];
  }
  const talks = mayAs(me, "operator", "operator.write");
  const all: readonly (readonly [MayWord, boolean])[] = [
    ["read", mayAs(me, "viewer", "operator.read") && !talks],
    ["talk", talks],
    ["approve", mayAs(me, "operator", "operator.approvals")],
    ["try", talks && signedIn && !mayAs(me, "admin")],
    ["change", mayAs(me, "admin")],
    ["seeAll", mayAs(me, "admin")],
    ["people", mayAs(me, "admin")],
  ];
  return all.filter(([, may]) => may).map(([word]) => word);
}
