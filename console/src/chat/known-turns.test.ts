import { expect, test } from "vitest";

import type { TurnDetail, TurnLine, TurnSpan } from "../wire/types.ts";
import { blocksOf, withKnownBlocks, withKnownTurns } from "./known-turns.ts";
import type { Item } from "./transcript.ts";

const turn = (turnId: string, prompt: string | null): TurnLine => ({ turnId, sessionKey: "k", agentId: "main", userId: "anna", subAgent: false, prompt, startedAt: "2026-01-01T00:00:00Z", endedAt: null, ending: "completed", calls: 1, blocked: 1, asked: 0, waiting: 0, faults: 0 });
const asked = (text: string, runId?: string): Item => ({ kind: "asked", text, ...(runId === undefined ? {} : { runId }) });
const runs = (items: readonly Item[]): unknown[] => items.map((item) => (item.kind === "asked" ? item.runId : item.kind));

test.each([
  ["in their order", [asked("a"), asked("b")], [turn("2", "b"), turn("1", "a")], ["1", "2"]],
  ["the same text twice", [asked("a"), asked("a")], [turn("2", "a"), turn("1", "a")], ["1", "2"]],
  ["an edited message leaves its first turn out", [asked("b")], [turn("2", "b"), turn("1", "a")], ["2"]],
  ["what nobody knows stays unknown", [asked("a"), asked("c")], [turn("1", "a")], ["1", undefined]],
  ["what is known already stays", [asked("a"), asked("x", "2")], [turn("2", "other"), turn("1", "a")], ["1", "2"]],
  ["without a prompt there is nothing to compare", [asked("a")], [turn("1", null)], [undefined]],
])("turns of messages: %s", (_, items, turns, expected) => {
  expect(runs(withKnownTurns(items, turns))).toEqual(expected);
});

test("why calls were stopped is read from the turn", () => {
  const span: TurnSpan = { id: "e", parentId: null, kind: "checkpoint", name: "pre_tool_use", round: 1, startMs: 0, durationMs: 1, toolCallId: "c", ruling: "deny", hooks: [{ name: "guard", family: "agent", checkpoint: "pre_tool_use", ran: true, startMs: 0, durationMs: 1, verdict: "deny", reason: "no" }] };
  const detail: TurnDetail = { turn: turn("1", "a"), parentTurnId: null, parentSpanId: null, durationMs: 1, truncated: false, spans: [span, { ...span, toolCallId: "d", ruling: "continue" }] };
  const blocked = { hookId: null, name: "guard", event: "pre_tool_use", reason: "no" };
  expect(blocksOf(detail)).toEqual(new Map([["c", blocked]]));
  const call: Item = { kind: "call", id: "c", name: "exec" };
  expect(withKnownBlocks([call, { ...call, id: "d" }], blocksOf(detail))).toEqual([{ ...call, blocked }, { ...call, id: "d" }]);
});
