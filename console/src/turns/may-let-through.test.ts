import { expect, test } from "vitest";

import type { Hook, TurnHook, TurnSpan } from "../wire/types.ts";
import { hindrance, hindranceOf, isRefusal } from "./may-let-through.ts";

const hook = (more: object = {}): TurnHook => ({ name: "a", family: "agent", ran: true, verdict: "deny", execution: { hookId: "1" }, ...more }) as TurnHook;
const span = (more: object = {}): TurnSpan => ({ tool: "exec", toolCallId: "c", call: { arguments: {} }, ...more }) as TurnSpan;
const ADMIN = { isAdmin: true, isMaster: false, isOthers: false };

test.each([
  ["a rule, an admin, one's own turn", hook(), span(), false, ADMIN, undefined],
  ["a rule that cannot be reached", hook({ fault: "unavailable" }), span(), false, ADMIN, "fault"],
  ["a rule whose breaker is open", hook({ ran: false }), span(), false, ADMIN, "fault"],
  ["a rule that is gone", hook({ execution: { hookId: null } }), span(), false, ADMIN, "gone"],
  ["a process hook", hook({ execution: undefined }), span(), false, ADMIN, "configuration"],
  ["an operator", hook(), span(), false, { ...ADMIN, isAdmin: false }, "role"],
  ["a sub-agent", hook(), span(), true, ADMIN, "subAgent"],
  ["somebody else's turn", hook(), span(), false, { ...ADMIN, isOthers: true }, "other"],
  ["arguments that are not kept whole", hook(), span({ call: { beginning: "x" } }), false, ADMIN, "input"],
] as const)("%s", (_, one, at, subAgent, asking, why) => {
  expect(hindrance(one, at, { subAgent }, asking)).toBe(why);
});

test.each([
  [{}, undefined],
  [{ metadata: { file: "secrets.toml" } }, "file"],
  [{ source: "builtin" }, "shipped"],
  [{ event: "post_tool_use" }, "event"],
  [{ scope: "global" }, "global"],
] as const)("a rule with %j", (more, why) => {
  expect(hindranceOf({ event: "pre_tool_use", source: "user", metadata: {}, scope: "tenant", ...more } as Hook, ADMIN)).toBe(why);
});

test("only a call that was refused is let through", () => {
  expect([isRefusal(hook(), span()), isRefusal(hook({ verdict: "ask" }), span()), isRefusal(hook(), span({ tool: undefined }))]).toEqual([true, false, false]);
});
