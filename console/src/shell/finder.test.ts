import { expect, test } from "vitest";

import { misfit } from "./finder.tsx";

test("what begins as somebody types stands above what only has it within", () => {
  const fits = ["Settings", "tiny", "no-tin", "by its id", "tin"].sort((one, other) => misfit(one, "tin") - misfit(other, "tin"));
  expect(fits).toEqual(["tin", "tiny", "no-tin", "Settings", "by its id"]);
});
