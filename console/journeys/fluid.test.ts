import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { busy, fluid, poured, repeatExecutions, tasks } from "./measure.ts";
import { outside } from "./people.ts";
import { DONE, Gateway, type Reply, Rig, rule, say, scripted, signedIn } from "./rig.ts";

/** No task of a page may take longer, in milliseconds: longer ones are felt. */
const LONGEST_TASK_MS = 100;

const CALLS = 25;
const ROUNDS = 10;
/** Each call is asked about by two rules: 500 events in a turn. */
const RULES = 2;
const EXECUTIONS = 10_000;

const round = (): Reply => ({ tool_calls: Array.from({ length: CALLS }, () => ({ name: "list_dir", arguments: { path: "." } })) });
const turn = (): Reply[] => [...Array.from({ length: ROUNDS }, round), DONE];
/** 50 pieces a second, for five seconds. */
const LIVE: Reply = { text: [...Array.from({ length: 250 }, (_, at) => `${at} `), "All ", "done."], delay_ms: 20 };

/** How long events come in each time, in seconds. */
const SECONDS = 4;
/** How long hooks run each time while a page is looked at, in seconds. */
const A_LOOK = 2;
/** How many come in a second. */
const PER_SECOND = 50;
/** What a list keeps of those that wait. */
const MOST_COUNTED = 500;
/** Turns that can be made meanwhile: more than a machine manages. */
const MANY_TURNS = 400;

let rig: Rig;
let gateway: Gateway;

beforeAll(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({ replies: [...turn(), LIVE, LIVE, LIVE, ...Array.from({ length: MANY_TURNS }, () => [round(), DONE]).flat()], agent: 'tools = ["list_dir"]\n', config: "requests_per_minute = 6000\n" });
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

const pages = (page: Page) => page.getByRole("navigation", { name: "Pages" });

test("a turn of 500 events stays fluid", async () => {
  const page = await signedIn(await rig.person(), gateway, "/chat", "anna");
  for (let at = 0; at < RULES; at += 1) {
    await rule(page, scripted(`rule ${at}`, "^list_dir$", { decision: "allow" }));
  }
  await say(page, "look around");
  await pages(page).getByRole("link", { name: "Turns" }).click();
  await fluid("a turn of 500 events", LONGEST_TASK_MS, async () => {
    await page.locator("[data-row]").first().waitFor();
    const found = await tasks(page, async () => {
      await page.locator("[data-row]").first().click();
      const tree = page.getByRole("tree");
      await tree.waitFor();
      await tree.focus();
      for (let at = 0; at < 40; at += 1) {
        await page.keyboard.press("j");
      }
      await page.keyboard.press("End");
      await page.keyboard.press("Home");
      await tree.hover();
      for (let at = 0; at < 30; at += 1) {
        await page.mouse.wheel(0, 600);
      }
      await page.waitForFunction(() => document.querySelectorAll("[role=treeitem]").length > 5);
    });
    await page.goBack();
    return found;
  });
}, 180_000);

test("50 pieces of an answer a second stay fluid", async () => {
  const page = await signedIn(await rig.person(), gateway, "/chat", "anna");
  await fluid("50 pieces of an answer a second", LONGEST_TASK_MS, () => tasks(page, () => say(page, "count")));
}, 180_000);

test("50 executions a second that come in stay fluid, and wait", async () => {
  const context = await rig.person();
  const pour = await poured(context);
  const page = await signedIn(context, gateway, "/executions", "anna");
  const other = await outside(await rig.person(), gateway);
  await page.locator("[data-row]").first().waitFor();
  await busy(other, 1);
  const first = await page.locator("[data-row]").first().getAttribute("href");
  await fluid("50 executions a second", LONGEST_TASK_MS, () => tasks(page, () => pour(PER_SECOND, SECONDS)));
  // They were counted, up to what a page keeps of them, and nothing moved.
  await expect.poll(async () => Number(/\d+/.exec(await page.getByRole("button", { name: /^Show \d+ new$/ }).innerText())?.[0])).toBeGreaterThanOrEqual(Math.min(PER_SECOND * SECONDS, MOST_COUNTED));
  expect(await page.locator("[data-row]").first().getAttribute("href")).toBe(first);
}, 180_000);

/** Pages that look for themselves what is new. */
const LOOKING: readonly (readonly [string, string, (page: Page) => Promise<unknown>])[] = [
  ["overview", "/", (page) => page.getByTestId("tiles").waitFor()],
  ["list of turns", "/turns", (page) => page.locator("[data-row]").first().waitFor()],
];

test.each(LOOKING)("while hooks run, %s stays fluid", async (name, path, ready) => {
  const page = await signedIn(await rig.person(), gateway, path, "anna");
  const other = await outside(await rig.person(), gateway);
  await ready(page);
  await fluid(`while hooks run, ${name}`, LONGEST_TASK_MS, () => tasks(page, () => busy(other, A_LOOK)));
}, 180_000);

test("while hooks run, a turn of 500 events stays fluid", async () => {
  const page = await signedIn(await rig.person(), gateway, "/turns", "anna");
  const other = await outside(await rig.person(), gateway);
  await page.locator("[data-row]").filter({ hasText: "look around" }).last().click();
  const tree = page.getByRole("tree");
  await tree.waitFor();
  await fluid("while hooks run, a turn of 500 events", LONGEST_TASK_MS, () =>
    tasks(page, async () => {
      const load = busy(other, A_LOOK);
      await tree.focus();
      for (let at = 0; at < 30; at += 1) {
        await page.keyboard.press("j");
      }
      await load;
    }),
  );
}, 180_000);

test("10,000 executions stay fluid, and come by themselves", async () => {
  gateway = await gateway.restart(() => Promise.resolve(repeatExecutions(gateway, EXECUTIONS)));
  const page = await signedIn(await rig.person(), gateway, "/chat", "anna");
  const list = page.getByRole("list", { name: "Executions" });
  /** The number of the last row that is an element. */
  const seen = (): Promise<number> => list.locator("[aria-posinset]").last().evaluate((row) => Number(row.getAttribute("aria-posinset")));
  await fluid(`${EXECUTIONS} executions`, LONGEST_TASK_MS, async () => {
    await pages(page).getByRole("link", { name: "Hooks" }).click();
    await page.locator("[data-row]").first().waitFor();
    return tasks(page, async () => {
      await pages(page).getByRole("link", { name: "Executions" }).click();
      await page.locator("[data-row]").first().waitFor();
      await expect
        .poll(
          async () => {
            await list.evaluate((place) => place.scrollTo(0, place.scrollHeight));
            return seen();
          },
          { timeout: 300_000, interval: 20 },
        )
        .toBe(EXECUTIONS);
      await list.hover();
      for (let at = 0; at < 30; at += 1) {
        await page.mouse.wheel(0, -2_000);
      }
      expect(await page.locator("[data-row]").count()).toBeLessThan(80);
    });
  });
}, 1_000_000);
