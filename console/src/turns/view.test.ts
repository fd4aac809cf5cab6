import { expect, test } from "vitest";

import { took, wholeMs } from "../ui/took.ts";
import type { TurnDetail, TurnHook, TurnLine, TurnSpan } from "../wire/types.ts";
import { quoted, testOf } from "./as-test.ts";
import { changedPlaces } from "./change.ts";
import { signOfLine } from "./line.ts";
import { oneLine } from "./said.ts";
import { all, counts, type Family, happened, judgeTokens, length, modelTokens, type Row, rowOf, shown, tree } from "./view.ts";

const LINE: TurnLine = { turnId: "t", sessionKey: "k", agentId: "main", userId: "anna", subAgent: false, prompt: "hi", startedAt: "2026-01-01T00:00:00Z", endedAt: "2026-01-01T00:00:01Z", ending: "completed", calls: 1, blocked: 0, asked: 0, waiting: 0, faults: 0 };
const SKIPPED: TurnHook = { name: "other", family: "agent", checkpoint: "pre_tool_use", ran: false, startMs: null, durationMs: null };
const HOOK: TurnHook = { name: "guard", family: "agent", checkpoint: "pre_tool_use", ran: true, startMs: 10, durationMs: 2, verdict: "continue" };
const span = (id: string, kind: TurnSpan["kind"], more: Partial<TurnSpan> = {}): TurnSpan => ({ id, kind, parentId: null, name: id, round: 1, startMs: 0, durationMs: 5, ...more });
const detail = (spans: readonly TurnSpan[], more: Partial<TurnDetail> = {}): TurnDetail => ({ turn: LINE, parentTurnId: null, parentSpanId: null, durationMs: 100, spans, truncated: false, ...more });
const family = (spans: readonly TurnSpan[], subAgents: readonly TurnDetail[] = []): Family => ({ turn: detail(spans), subAgents });
const drawn = (rows: readonly Row[]): unknown => rows.map((row) => (row.children.length === 0 ? `${row.of.kind} ${row.id} ${row.sign ?? "-"}` : [`${row.of.kind} ${row.id} ${row.sign ?? "-"}`, drawn(row.children)]));

const BLOCKED = family([
  span("round:1", "round"),
  span("model:1", "model", { parentId: "round:1" }),
  span("call:1", "call", { parentId: "round:1", name: "exec", toolCallId: "c1", startMs: 8 }),
  span("e:0", "checkpoint", {
    parentId: "call:1",
    name: "pre_tool_use",
    tool: "exec",
    toolCallId: "c1",
    ruling: "deny",
    startMs: 9,
    call: { arguments: { command: "git push --force" } },
    hooks: [
      { ...HOOK, verdict: "deny", reason: "by people only", name: "no-force-push" },
      { ...SKIPPED, reason: "matcher said no", compared: { pattern: "^write_file$", value: "exec" } },
      { ...SKIPPED, name: "third", reason: "decided already", by: "no-force-push" },
    ],
  }),
  span("e:1", "checkpoint", { parentId: "call:1", name: "approve_tool", ruling: "continue", hooks: [] }),
]);

test("hooks that did not run are one row, and what says nothing is none", () => {
  expect(drawn(tree(BLOCKED))).toEqual([
    ["round round:1 block", ["model model:1 -", ["call call:1 block", [["checkpoint e:0 block", ["hook e:0.0 block", ["skipped e:0.skipped -", ["hook e:0.1 off", "hook e:0.2 off"]]]]]]]],
  ]);
  const rows = tree(BLOCKED);
  expect(shown(rows, new Set()).map(({ row }) => row.id)).not.toContain("e:0.1");
  expect(shown(rows, new Set(["e:0.skipped"])).map(({ row, level }) => `${level} ${row.id}`)).toContain("5 e:0.1");
  expect(shown(rows, new Set(["round:1"])).map(({ row }) => row.id)).toEqual(["round:1"]);
});

test("only the checkpoint that decided is called blocked", () => {
  const at = (id: string, name: string, hooks: readonly TurnHook[]) => span(id, "checkpoint", { parentId: "call:1", name, tool: "exec", toolCallId: "c1", ruling: "deny", hooks });
  const guard = { ...HOOK, family: "process", verdict: "deny" };
  const skipped = { ...SKIPPED, reason: "decided already", by: "guard" };
  const rows = tree(family([span("call:1", "call", { name: "exec", toolCallId: "c1" }), at("e:0", "before_tool", [guard]), at("e:1", "pre_tool_use", [skipped])]));
  expect(all(rows).filter(({ of }) => of.kind === "checkpoint").map(({ id, sign }) => [id, sign])).toEqual([["e:0", "block"], ["e:1", undefined]]);
});

test("one sentence says what happened, and where it is seen", () => {
  expect(happened(BLOCKED, tree(BLOCKED))).toEqual({ kind: "blocked", what: "exec", hook: "no-force-push", why: "by people only", row: "e:0.0", more: 0 });
  const fault = family([span("e:0", "checkpoint", { ruling: "continue", tool: "exec", hooks: [{ ...HOOK, fault: "timed_out", cause: "no answer within 5 s" }] })]);
  expect(happened(fault, tree(fault))).toMatchObject({ kind: "faulted", hook: "guard", why: "no answer within 5 s", row: "e:0.0" });
  expect(happened(family([span("call:1", "call")]), [])).toMatchObject({ kind: "passed" });
  const refused = (id: string, call: string) => span(id, "checkpoint", { name: "pre_tool_use", tool: "exec", toolCallId: call, ruling: "deny", hooks: [{ ...HOOK, verdict: "deny" }] });
  const both = family([refused("e:0", "c1"), refused("e:1", "c2")]);
  expect(happened(both, tree(both))).toMatchObject({ row: "e:0.0", more: 1, next: "e:1" });
  const failed: Family = { turn: { ...detail([]), turn: { ...LINE, ending: "failed", error: "no model" } }, subAgents: [] };
  expect(happened(failed, [])).toMatchObject({ kind: "failed", why: "no model" });
  expect(counts(BLOCKED)).toEqual({ calls: 1, hooks: 1 });
});

test("what judges cost counts once, and nothing where the answer was known", () => {
  const judged = (tokens: number, more: object = {}) => ({ ...HOOK, execution: { id: "x", hookId: "h", version: 1, handlerType: "prompt", decision: "allow", retry: 0, tokens, ...more } as const });
  const child = detail([span("e:9", "checkpoint", { hooks: [judged(5)] })], { turn: { ...LINE, turnId: "u" }, parentTurnId: "t" });
  expect(judgeTokens(family([span("e:0", "checkpoint", { hooks: [judged(100), judged(40, { cached: true }), HOOK] })], [child]))).toBe(105);
});

test("what the agent's own model calls cost is a sum, also over sub-agents; what no provider told is nothing", () => {
  const model = (id: string, read?: number): TurnSpan => span(id, "model", read === undefined ? {} : { usage: { prompt_tokens: read, completion_tokens: 2, total_tokens: read + 2 } });
  const child = detail([model("model:1", 30)], { turn: { ...LINE, turnId: "u" }, parentTurnId: "t" });
  expect(modelTokens(family([model("model:1", 100), model("model:2"), span("call:1", "call")], [child]))).toEqual({ read: 130, written: 4 });
  expect(modelTokens(family([model("model:1")]))).toEqual({ read: 0, written: 0 });
});

test("a row is meant by the execution of a rule, or by a call", () => {
  const hook = { ...HOOK, execution: { id: "x", hookId: "h", version: 1, handlerType: "script", decision: "allow", retry: 0 } as const };
  const rows = tree(family([span("call:1", "call", { toolCallId: "c" }), span("e:0", "checkpoint", { parentId: "call:1", hooks: [HOOK, hook] }), span("call:2", "call", { toolCallId: "c", startMs: 9 })]));
  expect(rowOf(rows, "x", undefined)?.id).toBe("e:0.1");
  expect(rowOf(rows, undefined, "c")?.id).toBe("call:2");
  expect(rowOf(rows, "gone", "c")?.id).toBe("call:2");
  expect(rowOf(rows, undefined, undefined)).toBeUndefined();
});

test("a sub-agent stands below the call that it works for, at its time", () => {
  const child = detail([span("call:1", "call", { startMs: 3 })], { turn: { ...LINE, turnId: "u", startedAt: "2026-01-01T00:00:00.500Z" }, parentTurnId: "t", parentSpanId: "call:1" });
  const rows = tree(family([span("call:1", "call")], [child]));
  expect(drawn(rows)).toEqual([["call call:1 -", [["turn u -", ["call u/call:1 -"]]]]]);
  expect(all(rows).find(({ id }) => id === "u/call:1")?.start).toBe(503);
  expect(length(rows)).toBe(600);
});

test.each([
  [{}, "passed"],
  [{ blocked: 1, faults: 1 }, "blocked"],
  [{ blocked: 1, ending: "waiting" }, "waiting"],
  [{ ending: "failed" }, "failed"],
  [{ faults: 2, asked: 1 }, "faulted"],
  [{ asked: 1 }, "asked"],
] as const)("%j is %s", (more, word) => {
  expect(signOfLine({ ...LINE, ...more }).word).toBe(word);
});

test("a test of a hook is a line that a shell takes, whatever stands in it", () => {
  expect(quoted("it's")).toBe(`'it'\\''s'`);
  const [, , , checkpoint] = BLOCKED.turn.spans;
  const made = testOf({ ...HOOK, name: "a b" }, checkpoint as TurnSpan, null, []);
  expect(made?.line).toBe(`pintle hooks test 'a b' --event pre_tool_use --tool exec --input '{"command":"git push --force"}'`);
  expect(made?.name).toBe("a-b.test.json");
  expect(testOf(HOOK, span("e", "checkpoint", { tool: "exec" }), null, [])).toBeUndefined();
  expect(testOf(HOOK, span("e", "checkpoint"), "hi", [])?.line).toContain("--prompt hi");
});

test("lengths, lines and changed places are read at a glance", () => {
  expect([wholeMs(0), wholeMs(3)]).toEqual(["< 1 ms", "3 ms"]);
  expect([0.0123, 4.56, 123.4, 1_500, 59_000, 61_000].map(took)).toEqual(["12 µs", "4.6 ms", "123 ms", "1.5 s", "59 s", "1 min 1 s"]);
  expect([oneLine({ command: "ls" }), oneLine({ a: 1, b: 2 }), oneLine(undefined)]).toEqual(["ls", '{"a":1,"b":2}', ""]);
  expect(changedPlaces([{ op: "replace", path: "/arguments/a~1b", value: "x" }, { op: "remove", path: "/arguments/c" }, "strange"])).toEqual([
    { place: "arguments › a/b", how: "replace", value: "x" },
    { place: "arguments › c", how: "remove", value: undefined },
  ]);
});
