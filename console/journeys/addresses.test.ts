import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { ask, done, go, outside } from "./people.ts";
import { DONE, Gateway, LISTS, Rig, rule, say, scripted, signedIn } from "./rig.ts";

let rig: Rig;
let gateway: Gateway;
let page: Page;
let guard: string;

beforeAll(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({ replies: [LISTS, DONE, LISTS, DONE] });
  const nobody = await outside(await rig.person(), gateway);
  for (const role of ["viewer", "operator"]) {
    await done(nobody, "system", "members.add", { userId: `a-${role}`, role });
  }
  page = await signedIn(await rig.person(), gateway, "/hooks", "anna");
  guard = await rule(page, scripted("guard", "^list_dir$", { decision: "block", reason: "nobody looks" }));
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

test("the change log leads to the version that a line made", async () => {
  await done(page, "anna", "hooks.update", { hookId: guard, updates: { priority: 4 } });
  await done(page, "anna", "hooks.update", { hookId: guard, updates: { priority: 5 } });
  await go(page, `/hooks/changes?hook=${guard}`);
  await page.locator("[data-row]").filter({ hasText: "Version 3" }).click();
  await page.locator('[aria-current="true"][data-version="3"]').waitFor();
});

test("what a deleted hook was is known by its address", async () => {
  const gone = await rule(page, scripted("short-lived", "^exec$", { decision: "allow" }));
  await done(page, "anna", "hooks.delete", { hookId: gone, reason: "it was a test" });
  await go(page, "/hooks/changes");
  await page.locator("[data-row]").filter({ hasText: "short-lived" }).filter({ hasText: "deleted" }).click();
  await expect.poll(() => page.locator("[data-row]").count()).toBe(2);
  await expect.poll(() => page.url()).toContain(gone);
  await page.getByText("Because: it was a test").waitFor();
  // What it was before leads there, too: its own page is gone.
  await page.locator("[data-row]").filter({ hasText: "created" }).click();
  await page.getByText("Because: it was a test").waitFor();
});

test("an execution of one's own opens from its address, for those below admin too, and leads to its row of the turn", async () => {
  const own = await signedIn(await rig.person(), gateway, "/chat", "a-operator");
  await say(own, "look around");
  // The address of the conversation leads an administrator to it, and tells everybody else that it is not there.
  await expect.poll(() => decodeURIComponent(new URL(own.url()).pathname)).toMatch(/^\/chat\/agent:main:ws:a-operator:/);
  const talk = new URL(own.url()).pathname;
  await go(page, talk);
  await page.locator("[data-kind=asked]").getByText("look around").waitFor();
  await page.getByText("You can read this conversation").waitFor();
  const reader = await signedIn(await rig.person(), gateway, talk, "a-viewer");
  await reader.getByRole("heading", { name: "There is no such conversation" }).waitFor();
  await own.getByRole("link", { name: "Executions", exact: true }).click();
  await own.locator("[data-row]").filter({ hasText: "guard" }).first().click();
  await own.getByTestId("answer").getByText("nobody looks").waitFor();
  // A reload is what a paste of the address is: nothing is known here yet.
  await own.reload();
  await own.getByTestId("answer").getByText("nobody looks").waitFor();
  const address = new URL(own.url()).pathname;
  await own.locator("dt", { hasText: /^Turn$/ }).locator("xpath=following-sibling::dd[1]").getByRole("link").click();
  await own.getByTestId("detail").getByRole("heading", { name: /guard/ }).waitFor();
  // Somebody else who may not see it is told that it is not there; an administrator sees it.
  const viewer = await signedIn(await rig.person(), gateway, address, "a-viewer");
  await viewer.getByText("There is no such execution").waitFor();
  const id = address.split("/").at(-1) ?? "";
  const seen = async (user: string) => ((await ask(page, user, "hooks.history", { executionId: id })).payload?.["executions"] as unknown[]).length;
  expect([await seen("a-operator"), await seen("a-viewer"), await seen("anna")]).toEqual([1, 0, 1]);
  await go(page, address);
  await page.getByTestId("answer").getByText("nobody looks").waitFor();
});

test("executions are filtered by what failed", async () => {
  await rule(page, scripted("throws", "^list_dir$", {}, { priority: 50, config: { source: "function handle() { throw new Error('oh'); }" } }));
  await say(page, "look again");
  await go(page, "/executions");
  await page.getByLabel("Fault").selectOption({ label: "protocol error" });
  await expect.poll(() => page.locator("[data-row]").allInnerTexts()).toEqual([expect.stringContaining("throws")]);
  await expect.poll(() => page.url()).toContain("fault=protocol_error");
  await page.getByLabel("Fault").selectOption({ label: "killed" });
  await page.getByText("No rule answered anything here").waitFor();
});
