import { expect, test } from "vitest";

import type { HookFrame, RunEvent, RunEvents, RunHead } from "../wire/types.ts";
import { escaped, isOthers, keptKey, shownKey } from "./session-key.ts";
import { EMPTY, endings, fromHistory, heard, type Item, missed, noted, tells, unkept, upTo, withMedia } from "./transcript.ts";

const HEAD: RunHead = { agentId: "main", runId: "r", sessionKey: "k", userId: "anna", channel: "ws", chatId: "c" };
const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
const FRAME: HookFrame = { type: "hook", name: "n", role: "system", content: "mind", skill: "s", timing: "before_llm", id: "1", sig: "", sessionKey: "k", runId: "r", seq: 1 };
const event = <Kind extends keyof RunEvents>(type: Kind, payload: RunEvents[Kind], more: Partial<RunHead> = {}): RunEvent => ({ ...HEAD, type, payload, ...more }) as RunEvent;
const all = (...events: RunEvent[]): readonly Item[] => events.reduce(heard, EMPTY).items;

test("pieces become one answer, and the whole of it takes their place", () => {
  const items = all(event("run.started", { message: "hi", sig: "" }), event("chunk", { content: "All " }), event("chunk", { content: "don" }), event("run.completed", { content: "All done.", usage: USAGE }));
  expect(items).toEqual([
    { kind: "asked", text: "hi", runId: "r" },
    { kind: "answer", text: "All done.", thinking: "", open: false },
  ]);
});

test("an answer that calls followed stands once", () => {
  const items = all(event("chunk", { content: "I look" }), event("block.reply", { content: "I look" }), event("tool.call", { id: "1", name: "exec", arguments: { command: "ls" } }), event("tool.result", { id: "1", name: "exec", arguments: { command: "ls" }, result: "a", is_error: false }), event("run.completed", { content: "One file.", usage: USAGE }));
  expect(items.map((item) => item.kind)).toEqual(["answer", "call", "answer"]);
  expect(items[1]).toEqual({ kind: "call", id: "1", runId: "r", name: "exec", input: { command: "ls" }, result: "a", isError: false });
});

test("a call that was stopped says by whom and why, also after it is read again", () => {
  const live = heard(EMPTY, event("hook.blocked", { hookId: "h", name: "guard", event: "pre_tool_use", reason: "no", toolCallId: "1", tool: "exec", arguments: { command: "rm" } }));
  const blocked = { hookId: "h", name: "guard", event: "pre_tool_use", reason: "no" };
  expect(live.items).toEqual([{ kind: "call", id: "1", runId: "r", name: "exec", input: { command: "rm" }, blocked }]);
  const kept = fromHistory(
    [
      { role: "user", content: "hi" },
      { role: "assistant", content: "", tool_calls: [{ id: "1", type: "function", function: { name: "exec", arguments: '{"command":"rm"}' } }] },
      { role: "tool", content: "Hook blocked", tool_call_id: "1" },
    ],
    live,
  );
  expect(kept.items[1]).toEqual({ kind: "call", id: "1", name: "exec", input: { command: "rm" }, blocked, result: "Hook blocked" });
});

const refused = (runId: string, reason: string): RunEvent => event("hook.blocked", { hookId: "h", name: "guard", event: "pre_tool_use", reason, toolCallId: "1", tool: "exec" }, { runId });
const started = (runId: string, message: string): RunEvent => event("run.started", { message, sig: "" }, { runId });
const reasons = (items: readonly Item[]): unknown[] => items.flatMap((item) => (item.kind === "call" ? [item.blocked?.reason] : []));
const SAID = (...texts: string[]) =>
  texts.flatMap((content) => [
    { role: "user" as const, content },
    { role: "assistant" as const, content: "", tool_calls: [{ id: "1", type: "function" as const, function: { name: "exec", arguments: "{}" } }] },
    { role: "tool" as const, content: "Hook blocked", tool_call_id: "1" },
  ]);

test("the id of a call comes again in a later turn, and each call keeps its own reason", () => {
  const live = [started("a", "one"), refused("a", "first"), started("b", "two"), refused("b", "second")].reduce(heard, EMPTY);
  expect(reasons(live.items)).toEqual(["first", "second"]);
  expect(reasons(fromHistory(SAID("one", "two"), live).items)).toEqual(["first", "second"]);
});

test("an earlier turn with the same id of a call, read from the history, keeps nothing of a later one", () => {
  const live = [started("b", "two"), refused("b", "second")].reduce(heard, fromHistory(SAID("one")));
  expect(reasons(live.items)).toEqual([undefined, "second"]);
  expect(reasons(fromHistory(SAID("one", "two"), live).items)).toEqual([undefined, "second"]);
});

test("the id of a call comes again within a turn", () => {
  const ran = [event("tool.call", { id: "1", name: "exec", arguments: {} }), event("tool.result", { id: "1", name: "exec", arguments: {}, result: "a", is_error: false })];
  const live = [started("r", "hi"), ...ran, refused("r", "no"), refused("r", "again no")].reduce(heard, EMPTY);
  expect(reasons(live.items)).toEqual([undefined, "no", "again no"]);
  const call = { role: "assistant" as const, content: "", tool_calls: [{ id: "1", type: "function" as const, function: { name: "exec", arguments: "{}" } }] };
  const kept = fromHistory([{ role: "user", content: "hi" }, call, call, call], live);
  expect(reasons(kept.items)).toEqual([undefined, "no", "again no"]);
  expect(kept.items[1]).toMatchObject({ isError: false });
});

test("whether a call ran is known to whoever was there, and not told by the history", () => {
  const said = [
    { role: "user" as const, content: "hi" },
    { role: "assistant" as const, content: "", tool_calls: [{ id: "1", type: "function" as const, function: { name: "exec", arguments: "{}" } }] },
    { role: "tool" as const, content: "a", tool_call_id: "1" },
  ];
  const live = heard(EMPTY, event("tool.result", { id: "1", name: "exec", arguments: {}, result: "a", is_error: false }));
  expect(fromHistory(said, live).items[1]).toMatchObject({ result: "a", isError: false });
  expect(fromHistory(said).items[1]).not.toHaveProperty("isError");
});

test("that a hook answered in the tool's place is told, and stays known", () => {
  const live = heard(EMPTY, event("tool.result", { id: "1", name: "get_weather", arguments: {}, result: "15", is_error: false, answeredByHook: true }));
  expect(live.items[0]).toMatchObject({ isError: false, byHook: true });
  const said = [
    { role: "user" as const, content: "hi" },
    { role: "assistant" as const, content: "", tool_calls: [{ id: "1", type: "function" as const, function: { name: "get_weather", arguments: "{}" } }] },
    { role: "tool" as const, content: "15", tool_call_id: "1" },
  ];
  expect(fromHistory(said, live).items[1]).toMatchObject({ byHook: true });
});

test("a message that was stopped says why once", () => {
  const items = all(event("hook.blocked", { hookId: null, name: "gate", event: "user_prompt_submit", reason: "no" }), event("run.failed", { error: "hook blocked user_prompt_submit: no" }));
  expect(items).toEqual([{ kind: "blocked", blocked: { hookId: null, name: "gate", event: "user_prompt_submit", reason: "no" } }]);
  expect(endings(items)).toEqual(items);
});

test("texts of skills stand where they came, and the turns of messages stay known", () => {
  const started = heard(EMPTY, event("run.started", { message: "hi", sig: "" }));
  const withNote = noted(started, FRAME);
  expect(withNote.items[1]).toEqual({ kind: "note", name: "n", text: "mind", skill: "s" });
  const kept = fromHistory([{ role: "user", content: "old" }, { role: "user", content: "hi" }], withNote);
  expect(kept.items).toEqual([
    { kind: "asked", text: "old", place: 0 },
    { kind: "asked", text: "hi", place: 1, runId: "r" },
  ]);
});

test("what sub-agents say is theirs", () => {
  const items = all(event("chunk", { content: "x" }, { delegationId: "d" }), event("tool.call", { id: "2", name: "exec", arguments: {} }, { delegationId: "d", agentId: "child" }));
  expect(items).toEqual([{ kind: "call", id: "2", runId: "r", below: "d", name: "exec", input: {}, agent: "child" }]);
});

test("names of conversations go both ways", () => {
  expect(escaped("a b/é")).toBe("a%20b%2F%C3%A9");
  expect(escaped("direct")).toBe("%64irect");
  expect(keptKey("agent:main:ws:direct:c:1", "anna")).toBe("agent:main:ws:anna:c:1");
  expect(shownKey("agent:main:ws:anna:c:1", "anna")).toBe("agent:main:ws:direct:c:1");
  expect([isOthers("agent:main:ws:ben:c", "anna"), isOthers("agent:main:ws:direct:c", "anna")]).toEqual([true, false]);
});

test("a turn that goes on and is not kept yet stays below what is kept", () => {
  const live = [started("a", "one"), refused("a", "first"), event("run.completed", { content: "", usage: USAGE }, { runId: "a" }), started("b", "two"), event("approval.waiting", { approvalId: "p", tool: "exec", toolCallId: "c" }, { runId: "b" })].reduce(heard, EMPTY);
  const kept = fromHistory(SAID("one"), live);
  expect(unkept(live, kept.items)).toEqual([
    { kind: "asked", text: "two", runId: "b" },
    { kind: "approval", id: "p", tool: "exec", state: "waiting", call: "c", runId: "b" },
  ]);
  // Once its message is kept, only what waits is not told.
  expect(unkept(live, fromHistory(SAID("one", "two"), live).items)).toEqual([{ kind: "approval", id: "p", tool: "exec", state: "waiting", call: "c", runId: "b" }]);
  expect(unkept({ ...live, running: false }, kept.items)).toEqual([]);
  expect([tells(live.items, "b"), tells(live.items, "c")]).toEqual([true, false]);
});

test("an answer that goes on stays once its message is kept, with what was missed marked", () => {
  const live = [event("run.started", { message: "hi", sig: "" }), event("chunk", { content: "All d" })].reduce(heard, EMPTY);
  const kept = fromHistory([{ role: "user", content: "hi", turn_id: "r" }], live).items;
  const away = missed(missed(live));
  expect(unkept(away, kept)).toEqual([{ kind: "answer", text: "All d … ", thinking: "", open: true }]);
  expect(unkept(away, kept, false)).toEqual([]);
  // What is kept by now stands there once.
  expect(unkept(away, [...kept, { kind: "answer", text: "All done.", thinking: "", open: false }])).toEqual([]);
  const after = { ...away, items: [...kept, ...unkept(away, kept)] };
  expect(heard(after, event("chunk", { content: "e." })).items.at(-1)).toMatchObject({ text: "All d … e." });
  expect(heard(after, event("run.completed", { content: "All done.", usage: USAGE })).items.at(-1)).toMatchObject({ text: "All done.", open: false });
});

test("a call that was read from the history and runs then is the same call", () => {
  const kept = fromHistory([{ role: "user", content: "hi", turn_id: "r" }, { role: "assistant", content: "", tool_calls: [{ id: "1", type: "function", function: { name: "exec", arguments: "{}" } }] }]);
  const ran = heard(kept, event("tool.call", { id: "1", name: "exec", arguments: {} }));
  expect(ran.items.filter(({ kind }) => kind === "call")).toEqual([{ kind: "call", id: "1", name: "exec", input: {} }]);
});

test("files that the agent made stay at the end of their turn, and with an edited message all behind it goes", () => {
  const started = heard(EMPTY, event("run.started", { message: "hi", sig: "" }));
  const done = heard(withMedia(started, ["media://1"]), event("run.completed", { content: "here", usage: USAGE, media: ["media://2"] }));
  const kept = fromHistory([{ role: "user", content: "hi", media: ["media://1"] }, { role: "assistant", content: "here" }, { role: "user", content: "more" }], done);
  expect(kept.items).toEqual([
    { kind: "asked", text: "hi", place: 0, media: ["media://1"], runId: "r" },
    { kind: "answer", text: "here", thinking: "", open: false },
    { kind: "files", runId: "r", media: ["media://2"] },
    { kind: "asked", text: "more", place: 2 },
  ]);
  // What was said in the middle of the turn does not end it.
  const told = fromHistory([{ role: "user", content: "hi", turn_id: "r" }, { role: "user", content: "this, too", turn_id: "r" }, { role: "assistant", content: "here" }, { role: "user", content: "more", turn_id: "s" }], done);
  expect(told.items.map(({ kind }) => kind)).toEqual(["asked", "asked", "answer", "files", "asked"]);
  expect(upTo(kept, 2).items).toHaveLength(3);
  expect(upTo(kept, 0).items).toEqual([]);
  expect(upTo(kept, 7)).toBe(kept);
});
