import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { go } from "./people.ts";
import { DONE, Gateway, LISTS, Rig, signedIn } from "./rig.ts";

let rig: Rig;
let gateway: Gateway;
let page: Page;

beforeAll(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({ replies: [LISTS, DONE], agent: "ask = ['list_dir']\n" });
  page = await signedIn(await rig.person(), gateway, "/hooks", "system");
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

test("with nothing but what is shipped the page of hooks teaches how to begin", async () => {
  await page.getByText("No hook guards this tenant yet").waitFor();
  await page.getByText("pintle hooks add --starter").waitFor();
  // What is shipped stands below it.
  await page.getByText("pii-redactor").first().waitFor();
});

test("an approval says where the call would run, and leads to its row of the turn", async () => {
  await go(page, "/chat");
  await page.getByRole("button", { name: "New" }).click();
  await page.getByLabel("Message").fill("look around");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("link", { name: "Open the approval" }).first().click();
  await page.getByTestId("place").getByText("Workspace").waitFor();
  await page.getByTestId("place").getByText("/").first().waitFor();
  await page.getByRole("link", { name: "Open the turn" }).click();
  await page.getByTestId("detail").getByRole("heading", { name: /list_dir/ }).waitFor();
  expect(page.url()).toContain("call=");
});

test("each number of the overview leads to its list, and the budget to where it is", async () => {
  await go(page, "/");
  await page.getByRole("link", { name: /tokens/ }).click();
  await page.getByRole("heading", { name: "Health" }).waitFor();
  await go(page, "/");
  await page.getByRole("link", { name: /^asked \d/ }).click();
  await page.getByRole("heading", { name: "Turns" }).waitFor();
  expect(page.url()).toMatch(/decision=asked.*span=day|span=day.*decision=asked/);
});
