import { expect, test } from "vitest";

import type { Approval, TurnLine } from "../wire/types.ts";
import { approvedOf, approver, signWith } from "./approved.ts";

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
