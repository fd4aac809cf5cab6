import { expect, test } from "vitest";

import type { Approval, TurnLine } from "../wire/types.ts";
import { approvedOf, approver, signWith, voidBecause } from "./approved.ts";

const approval = (turn: string, tool: string, state: Approval["state"], by?: string): Approval => ({ turn_id: turn, tool, state, ...(by === undefined ? {} : { answered_by: by }) }) as Approval;

test("who approved a call that ran is known by the turn and the tool", () => {
  const all = [approval("a", "exec", "used", "anna"), approval("a", "exec", "refused", "bea"), approval("a", "write_file", "approved", "bea"), approval("b", "exec", "used", "carl")];
  const approved = approvedOf(all, "a");
  expect(approved).toEqual([all[0]]);
  expect([approver(approved, "exec"), approver(approved, "write_file")]).toEqual(["anna", undefined]);
  expect(approver([...approved, approval("a", "exec", "used", "bea")], "exec")).toBe("");
});

test("a turn whose call was asked about and ran was approved, wherever it is listed", () => {
  const turn = (more: Partial<TurnLine>): TurnLine => ({ turnId: "a", ending: "completed", blocked: 0, faults: 0, asked: 1, ...more }) as TurnLine;
  const used = [approval("a", "exec", "used", "anna")];
  expect([signWith(turn({}), used), signWith(turn({}), []), signWith(turn({ blocked: 1 }), used), signWith(turn({ turnId: "b" }), used)].map(({ word }) => word)).toEqual(["approved", "asked", "blocked", "asked"]);
});

test("why nobody may answer any more is said by the approval that is void", () => {
  const over = { ...approval("a", "exec", "void"), note: "the API key that asked for the turn was revoked or has expired" };
  expect([voidBecause([approval("a", "exec", "void"), over], "a"), voidBecause([over], "b"), voidBecause([approval("a", "exec", "refused")], "a")]).toEqual([over.note, "", ""]);
});
