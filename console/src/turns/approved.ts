/** What people said to calls of a turn that hooks asked about. Pure. */

import type { Approval } from "../wire/types.ts";

/** The calls of a turn that a person approved and that ran since. */
export const approvedOf = (approvals: readonly Approval[], turnId: string): readonly Approval[] => approvals.filter((one) => one.turn_id === turnId && one.state === "used");

/** Who approved the calls of `tool` among `approved`: one name, or an empty text where it was nobody known, or several people; nothing where no such call ran. */
export function approver(approved: readonly Approval[], tool: string): string | undefined {
  const names = new Set(approved.filter((one) => one.tool === tool).map((one) => one.answered_by ?? ""));
  const [first] = names;
  return names.size > 1 ? "" : first;
}
