/** What people said to calls of a turn that hooks asked about. Pure. */

import type { SignKind } from "../ui/sign.tsx";
import type { Approval, TurnLine } from "../wire/types.ts";
import { signOfLine, type TurnState } from "./line.ts";

/** The calls of a turn that a person approved and that ran since. */
export const approvedOf = (approvals: readonly Approval[], turnId: string): readonly Approval[] => approvals.filter((one) => one.turn_id === turnId && one.state === "used");

/** Why nobody may answer any more what was asked in a turn; an empty text where that is not known. Pure. */
export const voidBecause = (approvals: readonly Approval[], turnId: string): string => approvals.find((one) => one.turn_id === turnId && one.state === "void" && (one.note ?? "") !== "")?.note ?? "";

/** What a turn came to, where approvals are known: one that was only asked about, and whose call ran, was approved. */
export function signWith(turn: TurnLine, approvals: readonly Approval[]): { readonly kind: SignKind; readonly word: TurnState | "approved" } {
  const line = signOfLine(turn);
  return line.word === "asked" && approvedOf(approvals, turn.turnId).length > 0 ? { kind: "allow", word: "approved" } : line;
}

/** Who approved the calls of `tool` among `approved`: one name, or an empty text where it was nobody known, or several people; nothing where no such call ran. */
export function approver(approved: readonly Approval[], tool: string): string | undefined {
  const names = new Set(approved.filter((one) => one.tool === tool).map((one) => one.answered_by ?? ""));
  const [first] = names;
  return names.size > 1 ? "" : first;
}
