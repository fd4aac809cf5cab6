import { expect, test } from "vitest";

import type { TurnDetail, TurnSpan } from "../wire/types.ts";
import { amount, cost } from "./cost.ts";

const LINE = { turnId: "t", sessionKey: "k", agentId: "main", userId: "anna", subAgent: false, prompt: "hi", startedAt: "2026-01-01T00:00:00Z", endedAt: null, ending: "completed", calls: 0, blocked: 0, asked: 0, waiting: 0, faults: 0 } as const;
const model = (costUsd?: string): TurnSpan => ({ id: "model:1", kind: "model", parentId: null, name: "m", round: 1, startMs: 0, durationMs: 1, ...(costUsd === undefined ? {} : { costUsd }) });
const turn = (costUsd: string | undefined, ...spans: TurnSpan[]): TurnDetail => ({ turn: LINE, parentTurnId: null, parentSpanId: null, durationMs: 1, spans, truncated: false, ...(costUsd === undefined ? {} : { costUsd }) });

test.each([
  ["0.001290000", "0.00129"],
  ["0.000000001", "0.000000001"],
  ["12.500000000", "12.50"],
  ["0.000000000", "0.00"],
  ["123456789012345678.100000000", "123456789012345678.10"],
])("%s is shown as %s", (usd, shown) => {
  expect(amount(usd)).toBe(shown);
});

test("a turn costs what its calls and those of its sub-agents cost, to the last digit", () => {
  const child = turn("0.200000000", model("0.200000000"));
  expect(cost({ turn: turn("0.100000001", model("0.100000001")), subAgents: [child] })).toEqual({ usd: "0.300000001", isWhole: true });
});

test("a call without a price makes it the least that the turn cost, and without any price there is nothing to say", () => {
  expect(cost({ turn: turn("0.100000000", model("0.100000000"), model()), subAgents: [] })).toEqual({ usd: "0.10", isWhole: false });
  expect(cost({ turn: turn(undefined, model()), subAgents: [turn("0.100000000", model("0.100000000"))] })).toEqual({ usd: "0.10", isWhole: false });
  expect(cost({ turn: turn(undefined, model()), subAgents: [] })).toBeUndefined();
});
