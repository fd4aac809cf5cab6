import { expect, test } from "vitest";

import { agentNames } from "./agent-names.ts";

test("agents are called by their names, and one that is gone by its id", () => {
  expect(agentNames(["2", "3", "1"], [{ uuid: "1", id: "main" }, { uuid: "2", id: "watcher" }])).toEqual(["watcher", "3", "main"]);
  expect(agentNames([], [{ uuid: "1", id: "main" }])).toEqual([]);
});
