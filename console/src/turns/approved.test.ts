import { expect, test } from "vitest";

import type { Approval } from "../wire/types.ts";
import { approvedOf, approver } from "./approved.ts";

const approval = (turn: string, tool: string, state: Approval["state"], by?: string): Approval => ({ turn_id: turn, tool, state, ...(by === undefined ? {} : { answered_by: by }) }) as Approval;

test("who approved a call that ran is known by the turn and the tool", () => {
  const all = [approval("a", "exec", "used", "anna"), approval("a", "exec", "refused", "bea"), approval("a", "write_file", "approved", "bea"), approval("b", "exec", "used", "carl")];
  const approved = approvedOf(all, "a");
  expect(approved).toEqual([all[0]]);
  expect([approver(approved, "exec"), approver(approved, "write_file")]).toEqual(["anna", undefined]);
  expect(approver([...approved, approval("a", "exec", "used", "bea")], "exec")).toBe("");
});
