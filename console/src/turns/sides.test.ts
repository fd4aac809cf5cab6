import { expect, test } from "vitest";

import type { TurnHook, TurnSpan } from "../wire/types.ts";
import { sides } from "./sides.ts";

const hook = (name: string, change?: unknown): TurnHook => ({ name, family: "agent", checkpoint: "pre_tool_use", ran: true, startMs: 0, durationMs: 1, verdict: "modify", ...(change === undefined ? {} : { change }) });
const span = (input: Record<string, unknown> | undefined, hooks: readonly TurnHook[]): TurnSpan => ({ id: "e", parentId: null, kind: "checkpoint", name: "pre_tool_use", round: 1, startMs: 0, durationMs: 1, tool: "exec", ...(input === undefined ? {} : { call: { arguments: input } }), hooks });
const op = (kind: string, path: string, value?: unknown) => ({ op: kind, path: `/arguments/${path}`, ...(value === undefined ? {} : { value }) });

test("what a hook added, replaced and took away stands on both sides; what was there before is said to be unknown", () => {
  const one = hook("one", [op("replace", "command", "ls -a"), op("add", "timeout", 3), op("remove", "env")]);
  expect(sides([span({ command: "ls -a", timeout: 3 }, [one])], one, "?")).toEqual({ before: { command: "?", env: "?" }, after: { command: "ls -a", timeout: 3 } });
});

test("what hooks behind it changed is taken back first", () => {
  const one = hook("one", [op("add", "a", 1), op("replace", "command")]);
  const two = hook("two", [op("replace", "command", "second"), op("add", "b", 2)]);
  const at = [{ ...span(undefined, [one, hook("between")]), name: "before_tool" }, span({ command: "second", a: 1, b: 2 }, [two])];
  expect(sides(at, one, "?")).toEqual({ before: { command: "?" }, after: { command: "?", a: 1 } });
  expect(sides(at, two, "?")).toEqual({ before: { command: "?", a: 1 }, after: { command: "second", a: 1, b: 2 } });
});

test("lists and odd names are walked", () => {
  const one = hook("one", [op("replace", "list/0/a~1b", 1), op("add", "list/1", "x"), op("remove", "gone/0")]);
  expect(sides([span({ list: [{ "a/b": 1 }, "x"], gone: [2] }, [one])], one, "?")).toEqual({ before: { list: [{ "a/b": "?" }], gone: ["?", 2] }, after: { list: [{ "a/b": 1 }, "x"], gone: [2] } });
});

test("without the whole call, or without a change, there are no sides", () => {
  const one = hook("one", [op("add", "a", 1)]);
  expect(sides([span(undefined, [one])], one, "?")).toBeUndefined();
  const none = hook("none", { omitted_bytes: 9 });
  expect(sides([span({ a: 1 }, [none])], none, "?")).toBeUndefined();
});
