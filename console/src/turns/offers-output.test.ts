import { expect, test } from "vitest";

import { offersOutput } from "./offers-output.ts";

test.each([
  ["an admin, a command that wrote an answer", { stdoutBytes: 3, stderrBytes: 0 }, true, true],
  ["an admin, a script with a log", { stderrBytes: 12 }, true, true],
  ["an admin, a command that wrote nothing", { stdoutBytes: 0, stderrBytes: 0 }, true, false],
  ["an admin, a request", {}, true, false],
  ["an operator", { stdoutBytes: 3, stderrBytes: 12 }, false, false],
] as const)("%s", (_, execution, mayRead, isOffered) => {
  expect(offersOutput(execution, mayRead)).toBe(isOffered);
});
