import { expect, test } from "vitest";

import { RequestError } from "../wire/client.ts";
import { wentOn } from "./edited.ts";

test("a conversation that went on is told from other refusals", () => {
  const refused = (details?: unknown): RequestError => new RequestError({ code: "FAILED_PRECONDITION", message: "no", details });
  expect(wentOn(refused({ kind: "conversation_changed" }))).toBe(true);
  for (const other of [refused(), refused(null), refused("conversation_changed"), refused({ kind: "busy" }), new Error("conversation_changed"), undefined]) {
    expect(wentOn(other)).toBe(false);
  }
});
