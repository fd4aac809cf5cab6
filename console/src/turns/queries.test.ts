import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";

import type { PintleClient } from "../wire/client.ts";
import type { TurnEnding } from "../wire/types.ts";
import { heardTurn } from "./queries.ts";

test.each<[TurnEnding, number]>([
  ["running", 2],
  ["waiting", 2],
  ["completed", 1],
  ["failed", 1],
  ["stopped", 1],
  ["cut", 1],
])("whoever comes back to a turn that is %s reads it %i times", async (ending, times) => {
  let asked = 0;
  const request = () => {
    asked += 1;
    return Promise.resolve({ turn: { turn: { ending } }, subAgents: [] });
  };
  const queries = new QueryClient();
  const turn = heardTurn({ request } as unknown as PintleClient, "t");
  await queries.fetchQuery(turn);
  await queries.fetchQuery(turn);
  expect(asked).toBe(times);
});
