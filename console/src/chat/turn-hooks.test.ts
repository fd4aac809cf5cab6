import { expect, test } from "vitest";

import type { TurnDetail, TurnHook, TurnSpan } from "../wire/types.ts";
import { hooksOf } from "./turn-hooks.ts";

const hook = (name: string, more: Partial<TurnHook> = {}): TurnHook => ({ name, family: "process", checkpoint: "before_tool", ran: true, startMs: 0, durationMs: 1, verdict: "continue", ...more });
const checkpoint = (id: string, startMs: number, ...hooks: TurnHook[]): TurnSpan => ({ id, parentId: null, kind: "checkpoint", name: "before_tool", round: 1, startMs, durationMs: 1, ruling: "continue", hooks });
const detail = (turnId: string, ...spans: TurnSpan[]): TurnDetail => ({
  turn: { turnId, sessionKey: "k", agentId: "main", userId: "anna", subAgent: false, prompt: "hi", startedAt: "2026-01-01T00:00:00Z", endedAt: null, ending: "completed", calls: 1, blocked: 0, asked: 0, waiting: 0, faults: 0 },
  parentTurnId: null,
  parentSpanId: null,
  durationMs: 1,
  truncated: false,
  spans,
});

test("hooks of every family are listed in their order, and those that did not run are counted", () => {
  const passed: TurnHook = { name: "skips", family: "process", checkpoint: "before_tool", ran: false, startMs: null, durationMs: null, reason: "matcher said no" };
  const family = { turn: detail("1", checkpoint("b", 5, hook("late")), checkpoint("a", 1, hook("first"), passed)), subAgents: [] };
  const { rows, more, skipped } = hooksOf(family);
  expect([rows.map(({ of }) => of.hook.name), more, skipped]).toEqual([["first", "late"], 0, 1]);
  expect(hooksOf(family, 1)).toMatchObject({ more: 1, skipped: 1 });
});

test("what hooks did in the turns of sub-agents stands among them", () => {
  const child = { ...detail("2", checkpoint("c", 0, hook("of the child"))), parentTurnId: "1" };
  const family = { turn: detail("1", checkpoint("a", 1, hook("own"))), subAgents: [child] };
  expect(hooksOf(family).rows.map(({ of, turnId }) => [of.hook.name, turnId])).toEqual([["of the child", "2"], ["own", "1"]]);
});
