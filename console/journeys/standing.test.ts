import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { ask, done, go } from "./people.ts";
import { DONE, Gateway, LISTS, Rig, rule, say, scripted, signedIn } from "./rig.ts";

let rig: Rig;
let gateway: Gateway;
let page: Page;

beforeAll(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({
    replies: [LISTS, DONE, LISTS, DONE, LISTS, DONE],
    agent: "ask = ['list_dir']\napprovers = ['system']\n",
    env: { PINTLE_EDITION: "standard", PINTLE_ENCRYPTION_KEY: "ab".repeat(32) },
  });
  page = await signedIn(await rig.person(), gateway, "/hooks", "system");
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

const tile = (name: RegExp) => page.getByTestId("tiles").getByRole("link", { name });
const numberOf = async (name: RegExp): Promise<number> => Number((await tile(name).innerText()).split(/\s/)[0]);

test("with nothing but what is shipped the page of hooks teaches how to begin", async () => {
  await page.getByText("No hook guards this tenant yet").waitFor();
  await page.getByText("pintle hooks add --starter").waitFor();
  // What is shipped stands below it.
  await page.getByText("pii-redactor").first().waitFor();
});

test("a rule that never answered is not armed, and each number leads to those that it counts", async () => {
  const guard = await rule(page, scripted("guard", "^exec$", { decision: "block" }), "system");
  // A rule of another tenant counts there, and not here.
  await done(page, "system", "tenants.create", { slug: "acme" });
  expect((await ask(page, "system", "hooks.create", scripted("theirs", "^exec$", { decision: "block" }), undefined, "acme")).ok).toBe(true);
  // Where all tenants are shown, nobody says of it that it is proven either.
  await page.goto(`${gateway.url}/hooks?tenant=all&state=unproven`);
  await expect.poll(async () => (await page.locator("tbody [data-row]").allInnerTexts()).sort()).toEqual(["guard", "theirs"]);
  await go(page, "/");
  await expect.poll(() => numberOf(/unproven/)).toBe(1);
  const armed = await numberOf(/armed/);
  await tile(/unproven/).click();
  await page.getByRole("link", { name: "guard", exact: true }).waitFor();
  await expect.poll(() => page.locator("tbody [data-row]").allInnerTexts()).toEqual(["guard"]);
  await page.getByText("it has answered no event and no test since it was saved").first().waitFor();
  // A test of it as it stands proves it.
  expect((await ask(page, "system", "hooks.test", { hookId: guard, sampleEvent: { toolName: "exec", toolInput: {} } })).ok).toBe(true);
  await go(page, "/");
  await expect.poll(() => numberOf(/armed/)).toBe(armed + 1);
  await expect.poll(() => numberOf(/unproven/)).toBe(0);
  await tile(/armed/).click();
  await page.getByRole("link", { name: "guard", exact: true }).waitFor();
  // A change has to be proven anew.
  await done(page, "system", "hooks.update", { hookId: guard, updates: { priority: 2 } });
  await go(page, `/hooks/${guard}`);
  await page.getByText("on, unproven").waitFor();
  // A test in the page is seen there at once.
  await page.getByRole("button", { name: "Run test" }).click();
  await page.getByTestId("result").waitFor();
  await page.getByText("on, unproven").waitFor({ state: "detached", timeout: 4_000 });
});

test("an approval says who may answer, where the call would run, and leads to its row of the turn", async () => {
  await done(page, "system", "members.add", { userId: "ben", role: "operator" });
  const ben = await signedIn(await rig.person(), gateway, "/chat", "ben");
  await ben.getByRole("button", { name: "New" }).click();
  await ben.getByLabel("Message").fill("look around");
  await ben.getByRole("button", { name: "Send" }).click();
  // In the conversation it is somebody else's to answer.
  await ben.getByText("Somebody who may approve has to answer.").waitFor();
  expect(await ben.getByRole("button", { name: "Approve once" }).count()).toBe(0);
  await ben.getByRole("link", { name: "Open the approval" }).first().click();
  await expect.poll(() => ben.getByTestId("approvers").innerText()).toBe("Users or roles named for this agent: system. You cannot answer it.");
  await ben.getByTestId("place").getByText("Workspace").waitFor();
  await ben.getByTestId("place").getByText("/").first().waitFor();
  await expect.poll(() => ben.getByRole("button", { name: "Approve once" }).count()).toBe(0);
  await ben.getByRole("link", { name: "Open the turn" }).click();
  await ben.getByTestId("detail").getByRole("heading", { name: /list_dir/ }).waitFor();
  await expect.poll(() => ben.url()).toContain("call=");
  await go(page, "/approvals");
  await page.locator("[data-row]").first().click();
  await expect.poll(() => page.getByTestId("approvers").innerText()).toBe("Users or roles named for this agent: system.");
  await page.getByRole("button", { name: "Approve once" }).click();
  await page.getByText("by system").waitFor();
});

test("each number of the overview leads to its list, and the budget to where it is", async () => {
  await go(page, "/");
  await page.getByRole("link", { name: /tokens/ }).click();
  await page.getByRole("heading", { name: "Health" }).waitFor();
  await go(page, "/");
  const asked = page.locator("main li").filter({ hasText: /^asked \d/ }).getByRole("link", { name: /^in \d+ turns?$/ });
  const [, many = ""] = /(\d+)/.exec(await asked.innerText()) ?? [];
  await asked.click();
  await page.getByRole("heading", { name: "Turns" }).waitFor();
  // The list has as many as the number said.
  await expect.poll(() => page.locator("[data-row]").count()).toBe(Number(many));
  await expect.poll(() => page.url()).toMatch(/decision=asked.*span=day|span=day.*decision=asked/);
});

test("a breaker that fills says how full it is", async () => {
  const often = await rule(page, scripted("often", "^list_dir$", { decision: "block", reason: "no" }, { priority: 90 }), "system");
  const other = await signedIn(await rig.person(), gateway, `/hooks/${often}`, "system");
  await other.getByText("on, unproven").waitFor();
  await say(page, "look again");
  // Whoever looks at it meanwhile sees that it answered.
  await other.getByText("on, unproven").waitFor({ state: "detached" });
  await other.context().close();
  await go(page, "/health");
  await page.getByTestId("filling").getByText("1 of 5 within 60 s. At 5 it opens.").waitFor();
  await page.getByTestId("filling").getByRole("link", { name: "often" }).waitFor();
});

test("the list of pages counts what waits in every tenant while all are chosen, and leads there", async () => {
  // It waits until somebody answers, or for ever.
  void ask(page, "system", "chat.send", { message: "look in acme" }, undefined, "acme").catch(() => undefined);
  const approvals = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: /^Approvals/ });
  await go(page, "/?tenant=all");
  await expect.poll(() => approvals.innerText(), { timeout: 20_000 }).toMatch(/1/);
  await approvals.click();
  await expect.poll(() => page.url()).toContain("tenant=all");
  await page.locator("[data-row]").filter({ hasText: "acme" }).waitFor();
  await go(page, "/");
  await expect.poll(() => approvals.innerText()).not.toMatch(/\d/);
  // What was approved there is called so here.
  const [asked] = (await ask(page, "system", "approvals.list", {}, undefined, "acme")).payload?.["approvals"] as { id: string }[];
  expect((await ask(page, "system", "approvals.approve", { id: asked?.id }, undefined, "acme")).ok).toBe(true);
  const theirs = async () => (await done(page, "system", "turns.list", { allTenants: true })) as { turns: { prompt: string | null; ending: string }[] };
  await expect.poll(async () => (await theirs()).turns.find(({ prompt }) => prompt === "look in acme")?.ending, { timeout: 20_000 }).toBe("completed");
  await go(page, "/turns?tenant=all");
  await page.locator("[data-row]").filter({ hasText: "look in acme" }).getByText("approved", { exact: true }).waitFor();
});
