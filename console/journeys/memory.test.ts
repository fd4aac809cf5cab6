import { afterAll, beforeAll, expect, test } from "vitest";

import { busy, poured } from "./measure.ts";
import { outside } from "./people.ts";
import { DONE, Gateway, LISTS, Rig, rule, scripted, signedIn } from "./rig.ts";

/** How many executions come in, and for how long: ten minutes at 50 a second where somebody asks for it; else a third of them,
 * as fast as they can be told. */
const [PER_SECOND, SECONDS] = process.env["PINTLE_LONG"] === "1" ? [50, 600] : [1_000, 10];
/** How often memory is looked at meanwhile. */
const PARTS = 5;
/** What memory may grow meanwhile for each of them, in bytes: a page that kept its id alone would need more. */
const MOST_BYTES_EACH = 50;
/** What fills whatever a page keeps of the newest, in seconds. */
const FILLING = 1;

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

test("memory does not grow while executions come in", async () => {
  gateway = await Gateway.start({ replies: Array.from({ length: 200 }, () => [LISTS, DONE]).flat(), agent: 'tools = ["list_dir"]\n' });
  const context = await rig.person();
  const pour = await poured(context);
  const page = await signedIn(context, gateway, "/executions", "anna");
  const session = await page.context().newCDPSession(page);
  const used = async (): Promise<number> => {
    await session.send("HeapProfiler.collectGarbage");
    return (await session.send("Runtime.getHeapUsage")).usedSize / 2 ** 20;
  };
  const other = await outside(await rig.person(), gateway);
  await rule(page, scripted("looks", "^list_dir$", { decision: "allow" }));
  await busy(other, 1);
  await page.getByRole("button", { name: /^Show \d+ new$/ }).or(page.locator("[data-row]")).first().waitFor();
  await pour(PER_SECOND, FILLING);
  const heap = [await used()];
  for (let part = 0; part < PARTS; part += 1) {
    await pour(PER_SECOND, SECONDS / PARTS);
    heap.push(await used());
  }
  const growth = slope(heap) * PARTS;
  process.stdout.write(`memory: ${heap.map((mib) => mib.toFixed(2)).join(", ")} MiB in ${SECONDS} s at ${PER_SECOND} executions a second: ${growth.toFixed(2)} MiB more\n`);
  expect((growth * 2 ** 20) / (PER_SECOND * SECONDS)).toBeLessThan(MOST_BYTES_EACH);
}, SECONDS * 1_000 + 180_000);

/** By how much `all` grows from one to the next: of the line that is nearest to them. */
function slope(all: readonly number[]): number {
  const [middle, mean] = [(all.length - 1) / 2, all.reduce((sum, one) => sum + one, 0) / all.length];
  const spread = all.reduce((sum, _, at) => sum + (at - middle) ** 2, 0);
  return all.reduce((sum, one, at) => sum + (at - middle) * (one - mean), 0) / spread;
}
