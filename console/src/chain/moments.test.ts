import { expect, test } from "vitest";

import { CHECKPOINTS, type TurnDetail, type TurnHook, type TurnLine, type TurnSpan } from "../wire/types.ts";
import { MOMENTS, momentOf, pastOf } from "./moments.ts";
import { pastEvents } from "./past.ts";

const LINE: TurnLine = { turnId: "t", sessionKey: "k", agentId: "main", userId: "anna", subAgent: false, prompt: "hi", startedAt: "2026-01-01T00:00:00Z", endedAt: null, ending: "completed", calls: 1, blocked: 0, asked: 0, waiting: 0, faults: 0 };
const hook = (checkpoint: TurnHook["checkpoint"], name: string): TurnHook => ({ name, family: "agent", checkpoint, ran: true, startMs: 0, durationMs: 1, verdict: "continue" });
const span = (id: string, kind: TurnSpan["kind"], name: string, more: Partial<TurnSpan> = {}): TurnSpan => ({ id, kind, parentId: null, name, round: 1, startMs: 0, durationMs: 1, ...more });
const [PROCESS, RULE, OTHER] = [hook("before_tool", "freeze"), hook("pre_tool_use", "guard"), hook("pre_tool_use", "other")];
const TURN: TurnDetail = {
  turn: LINE,
  parentTurnId: null,
  parentSpanId: null,
  durationMs: 1,
  truncated: false,
  spans: [
    span("m", "checkpoint", "user_prompt_submit", { hooks: [hook("user_prompt_submit", "words")] }),
    span("call:1:c", "call", "exec", { tool: "exec", toolCallId: "c" }),
    span("a", "checkpoint", "before_tool", { tool: "exec", toolCallId: "c", hooks: [PROCESS] }),
    span("b", "checkpoint", "pre_tool_use", { tool: "exec", toolCallId: "c", call: { arguments: { command: "ls" } }, hooks: [RULE] }),
    span("d", "checkpoint", "post_tool_use", { tool: "exec", toolCallId: "c", hooks: [] }),
    span("e", "checkpoint", "pre_tool_use", { tool: "exec", toolCallId: "c2", hooks: [OTHER] }),
    span("model:1", "model", "m"),
  ],
};

test("every checkpoint stands in one moment", () => {
  expect(CHECKPOINTS.map(momentOf)).not.toContain(undefined);
  expect(Object.values(MOMENTS).flat().toSorted()).toEqual([...CHECKPOINTS].toSorted());
});

test("a call, or any of its checkpoints, is a question about all of them", () => {
  const hooks = new Map([["before_tool freeze", PROCESS], ["pre_tool_use guard", RULE]]);
  const expected = { moment: "call", agent: "main", tool: "exec", input: { command: "ls" }, hooks };
  for (const id of ["call:1:c", "a", "b"]) {
    expect(pastOf(TURN, id)).toEqual(expected);
  }
  expect(pastOf(TURN, "d")).toEqual({ ...expected, moment: "result", input: undefined, hooks: new Map() });
});

test("a message is one, a model call and what is not there are none", () => {
  expect(pastOf(TURN, "m")).toMatchObject({ moment: "message", tool: "", input: undefined });
  expect(pastOf(TURN, "model:1")).toBeUndefined();
  expect(pastOf(TURN, "gone")).toBeUndefined();
});

test("of a turn its message and the calls whose arguments are kept can be asked about again, the last first", () => {
  expect(pastEvents(TURN)).toMatchObject([
    { turn: "t", row: "call:1:c", moment: "call", tool: "exec", input: { command: "ls" }, text: undefined },
    { turn: "t", row: "m", moment: "message", text: "hi" },
  ]);
  expect(pastEvents({ ...TURN, spans: [] })).toMatchObject([{ row: undefined, moment: "message", text: "hi" }]);
  expect(pastEvents({ ...TURN, turn: { ...LINE, prompt: null }, spans: [] })).toEqual([]);
});
