import { afterAll, beforeAll, expect, test } from "vitest";

import { done, outside } from "./people.ts";
import { DONE, Gateway, type Reply, Rig, rule, scripted, signedIn } from "./rig.ts";

/** How long it is watched whether memory grows, in milliseconds: ten minutes where somebody asks for it. */
const WATCHED_MS = process.env["PINTLE_LONG"] === "1" ? 600_000 : 20_000;
/** What memory may grow meanwhile, in MiB: what a page keeps of the newest events is less. */
const MOST_MIB = 4;

const CALLS = 50;
const round: Reply = { tool_calls: Array.from({ length: CALLS }, () => ({ name: "list_dir", arguments: { path: "." } })) };
/** So many take turns. */
const WORKERS = 100;
/** No turn is faster: so many are prepared. */
const SHORTEST_TURN_MS = 200;
/** Turns that fill what a page keeps. */
const FILLING = 12;

let rig: Rig;
let gateway: Gateway;

beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

test("memory does not grow while events come", async () => {
  gateway = await Gateway.start({ replies: Array.from({ length: WATCHED_MS / SHORTEST_TURN_MS + 2 * FILLING }, () => [round, DONE]).flat(), agent: 'tools = ["list_dir"]\n', config: "requests_per_minute = 6000\n" });
  const page = await signedIn(await rig.person(), gateway, "/executions", "anna");
  const session = await page.context().newCDPSession(page);
  const used = async (): Promise<number> => {
    await session.send("HeapProfiler.collectGarbage");
    return (await session.send("Runtime.getHeapUsage")).usedSize / 2 ** 20;
  };
  const other = await outside(await rig.person(), gateway);
  // Of many: each may say 20 things a minute.
  let turns = 0;
  const work = (): Promise<unknown> => {
    turns += 1;
    const user = `worker-${turns % WORKERS}`;
    return done(other, user, "chat.send", { message: "look around", agentId: "main", sessionKey: `agent:main:ws:direct:${crypto.randomUUID()}` });
  };
  await rule(page, scripted("looks", "^list_dir$", { decision: "allow" }));
  await work();
  await page.reload();
  // What comes first fills what a page keeps of the newest.
  await page.locator("[data-row]").first().waitFor();
  for (let at = 0; at < FILLING; at += 1) {
    await work();
  }
  await page.getByRole("button", { name: /^Show \d+ new$/ }).waitFor();
  const before = await used();
  const filled = turns;
  for (const end = Date.now() + WATCHED_MS; Date.now() < end; ) {
    await work();
  }
  const after = await used();
  process.stdout.write(`memory: ${before.toFixed(1)} MiB, and ${after.toFixed(1)} MiB after ${(turns - filled) * CALLS} executions in ${WATCHED_MS / 1_000} s\n`);
  expect(after - before).toBeLessThan(MOST_MIB);
}, WATCHED_MS + 180_000);
