import { expect, test } from "vitest";

import type { Execution } from "../wire/types.ts";
import { isOf } from "./use-live.ts";

const ROW = { hook_id: "h", event: "pre_tool_use", decision: "block", session_key: "s", metadata: { fault: "killed" } } as unknown as Execution;

test.each([
  [{}, true],
  [{ hookId: "h", event: "pre_tool_use", decision: "block", sessionId: "s" }, true],
  [{ hookId: "other" }, false],
  [{ event: "stop" }, false],
  [{ decision: "allow" }, false],
  [{ fault: "killed" }, true],
  [{ fault: "timed_out" }, false],
  [{ sessionId: "other" }, false],
  [{ limit: 50, cursor: "x" }, true],
] as const)("%j: %s", (query, is) => {
  expect(isOf(ROW, query)).toBe(is);
});
