import { expect, test } from "vitest";

import type { Approval, TurnDetail, TurnLine, TurnSpan } from "../wire/types.ts";
import { callKey, withAnswers, withoutWaiting, withUnknownWaiting } from "./calls.ts";
import { outcomesOf, withKnownOutcomes } from "./known-turns.ts";
import type { Item } from "./transcript.ts";

const turn = (turnId: string, prompt: string | null): TurnLine => ({ turnId, sessionKey: "k", agentId: "main", userId: "anna", subAgent: false, prompt, startedAt: "2026-01-01T00:00:00Z", endedAt: null, ending: "completed", calls: 1, blocked: 1, asked: 0, waiting: 0, faults: 0 });
const asked = (text: string, runId?: string): Item => ({ kind: "asked", text, ...(runId === undefined ? {} : { runId }) });

test("why calls were stopped is read from the turn", () => {
  const span: TurnSpan = { id: "e", parentId: null, kind: "checkpoint", name: "pre_tool_use", round: 1, startMs: 0, durationMs: 1, toolCallId: "c", ruling: "deny", hooks: [{ name: "guard", family: "agent", checkpoint: "pre_tool_use", ran: true, startMs: 0, durationMs: 1, verdict: "deny", reason: "no" }] };
  const detail: TurnDetail = { turn: turn("1", "a"), parentTurnId: null, parentSpanId: null, durationMs: 1, truncated: false, spans: [span, { ...span, toolCallId: "d", ruling: "continue" }] };
  const blocked = { hookId: null, name: "guard", event: "pre_tool_use", reason: "no" };
  expect(outcomesOf(detail)).toEqual(new Map([[callKey("1", "c", 0), { blocked }]]));
  const call: Item = { kind: "call", id: "c", name: "exec" };
  const [first, later] = [asked("a", "1"), asked("b", "2")];
  expect(withKnownOutcomes([first, call, { ...call, id: "d" }, later, call], outcomesOf(detail))).toEqual([first, { ...call, blocked }, { ...call, id: "d" }, later, call]);
  // Where the turn is not known, only a name that comes once says which call it is.
  expect(withKnownOutcomes([asked("a"), call], outcomesOf(detail))).toEqual([asked("a"), { ...call, blocked }]);
  expect(withKnownOutcomes([asked("a"), call, asked("b"), call], outcomesOf(detail))).toEqual([asked("a"), call, asked("b"), call]);
});

test("a call that comes again within a turn is told by its round", () => {
  const span = (round: number, ruling: string, text: string): TurnSpan => ({ id: String(round), parentId: null, kind: "checkpoint", name: "pre_tool_use", round, startMs: 0, durationMs: 1, toolCallId: "c", ruling, text });
  const detail: TurnDetail = { turn: turn("1", "a"), parentTurnId: null, parentSpanId: null, durationMs: 1, truncated: false, spans: [span(1, "deny", "first"), span(2, "continue", ""), span(3, "deny", "last")] };
  const call: Item = { kind: "call", id: "c", name: "exec" };
  const items = withKnownOutcomes([asked("a", "1"), call, call, call], outcomesOf(detail));
  expect(items.map((item) => (item.kind === "call" ? item.blocked?.reason : item.kind))).toEqual(["asked", "first", undefined, "last"]);
});

test("what a person answered stands with its call", () => {
  const approval = (turn_id: string, state: string, cmd: string) => ({ id: `${turn_id}${cmd}`, turn_id, tool_call_id: "c", state, arguments: { cmd } }) as unknown as Approval;
  const call = (cmd: string): Item => ({ kind: "call", id: "c", name: "exec", input: { cmd } });
  const shown = (items: readonly Item[], ...approvals: Approval[]) => withAnswers(items, approvals).map((item) => (item.kind === "call" ? item.answered?.id : item.kind));
  const items = [asked("a", "1"), call("x"), asked("b", "2"), call("y"), call("z")];
  expect(shown(items, approval("1", "used", "x"), approval("2", "refused", "z"))).toEqual(["asked", "1x", "asked", undefined, "2z"]);
  expect(shown(items, approval("1", "waiting", "x"), approval("3", "used", "y"))).toEqual(["asked", undefined, "asked", undefined, undefined]);
});

test("whether a call ran is read from the turn, and what stopped it says more", () => {
  const call: TurnSpan = { id: "1", parentId: null, kind: "call", name: "exec", round: 1, startMs: 0, durationMs: 1, toolCallId: "c", result: "a" };
  const denied: TurnSpan = { id: "2", parentId: null, kind: "checkpoint", name: "pre_tool_use", round: 1, startMs: 0, durationMs: 1, toolCallId: "e", ruling: "deny", text: "no" };
  const spans = [call, { ...call, toolCallId: "d", isError: true }, { ...call, toolCallId: "e" }, denied];
  const outcomes = outcomesOf({ turn: turn("1", "a"), parentTurnId: null, parentSpanId: null, durationMs: 1, truncated: false, spans });
  const item = (id: string): Item => ({ kind: "call", id, name: "exec", result: "a" });
  expect(withKnownOutcomes([asked("a", "1"), item("c"), item("d"), item("e")], outcomes)).toEqual([
    asked("a", "1"),
    { ...item("c"), isError: false },
    { ...item("d"), isError: true },
    { ...item("e"), blocked: { hookId: null, name: "", event: "pre_tool_use", reason: "no" } },
  ]);
});

test("a call that waits for a person stands once: as its approval", () => {
  const approval = { id: "x", turn_id: "1", tool_call_id: "c", state: "waiting" } as unknown as Approval;
  const call: Item = { kind: "call", id: "c", name: "exec" };
  const done: Item = { ...call, result: "a" };
  const items = [asked("a", "0"), call, asked("b", "1"), done, call];
  expect(withoutWaiting(items, [approval])).toEqual([asked("a", "0"), call, asked("b", "1"), done]);
  expect(withoutWaiting(items, [{ ...approval, state: "approved" }])).toEqual(items);
  expect(withoutWaiting(items, [])).toEqual(items);
});

test("a call that waits stands once for whoever may see no approvals, with what it asks for", () => {
  const call: Item = { kind: "call", id: "c", name: "write_file", input: { path: "notes.txt" } };
  const waits: Item = { kind: "approval", id: "x", tool: "write_file", state: "waiting", call: "c", runId: "1" };
  expect(withoutWaiting([asked("b", "1"), call, waits], [])).toEqual([asked("b", "1"), { ...waits, input: { path: "notes.txt" } }]);
  const over: Item = { ...waits, state: "approved" };
  expect(withoutWaiting([asked("b", "1"), call, over], [])).toEqual([asked("b", "1"), call, over]);
});

test("who came later and may see no approvals is not told that a call runs which waits", () => {
  const call: Item = { kind: "call", id: "c", name: "exec" };
  const done: Item = { ...call, result: "a" };
  expect(withUnknownWaiting([asked("a", "0"), call, asked("b", "1"), done, call])).toEqual([asked("a", "0"), call, asked("b", "1"), done, { ...call, held: "waits" }]);
  expect(withUnknownWaiting([asked("b", "1"), call, { ...call, id: "d" }])).toEqual([asked("b", "1"), { ...call, held: "unknown" }, { ...call, id: "d", held: "unknown" }]);
});

test("that a hook answered in the tool's place is read from the turn", () => {
  const call: TurnSpan = { id: "1", parentId: null, kind: "call", name: "get_weather", round: 1, startMs: 0, durationMs: 1, toolCallId: "c", result: "a" };
  const decided: TurnSpan = { id: "2", parentId: "1", kind: "checkpoint", name: "before_tool", round: 1, startMs: 0, durationMs: 1, toolCallId: "c", answeredByHook: true };
  const outcomes = outcomesOf({ turn: turn("1", "a"), parentTurnId: null, parentSpanId: null, durationMs: 1, truncated: false, spans: [call, decided] });
  expect([...outcomes.values()]).toEqual([{ isError: false, byHook: true }]);
});
