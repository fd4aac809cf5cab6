import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { ask } from "./people.ts";
import { DONE, endpoint, Gateway, LISTS, Rig, rule, signedIn } from "./rig.ts";

let rig: Rig;
let gateway: Gateway;
let service: Awaited<ReturnType<typeof endpoint>>;
let verdict: Record<string, unknown> = { decision: "block", reason: "listing is for people" };

beforeAll(async () => {
  rig = await Rig.start();
  service = await endpoint(() => verdict);
  gateway = await Gateway.start({
    replies: [LISTS, DONE, LISTS, DONE, LISTS, DONE],
    config: `[[agent_hooks.http.allow]]\nhost = "127.0.0.1"\nports = [${service.port}]\n`,
  });
});
afterAll(async () => {
  service.server.close();
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("All done.").last().waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
}

test("an HTTP rule is made, blocks a tool in the chat, says why, is switched off, and the tool passes", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/hooks", "anna");
  await page.getByText("No hook").or(page.getByText("pii-redactor")).first().waitFor();
  await page.getByRole("link", { name: "New hook" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Safety webhook");
  await page.getByLabel("URL").fill(service.url);
  await page.getByLabel("Matcher").fill("^list_dir$");
  // Test panel: it fires the unsaved hook with a sample event and shows what came of it.
  await page.getByLabel("Tool", { exact: true }).fill("list_dir");
  await page.getByRole("button", { name: "Run test" }).click();
  const result = page.getByTestId("result");
  await result.getByText("listing is for people").waitFor();
  await expect.poll(() => result.innerText()).toMatch(/block[\s\S]*Took[\s\S]*ms[\s\S]*HTTP status[\s\S]*200/);
  await page.getByRole("button", { name: "Create hook" }).click();
  await page.getByRole("heading", { name: /Safety webhook/ }).waitFor();
  await expect.poll(() => page.getByTestId("answer").innerText()).toContain("before a tool that matches ^list_dir$ runs");

  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await page.getByRole("button", { name: "New" }).click();
  await say(page, "look around");
  const blocked = page.locator("[data-kind=call]").first();
  await expect.poll(() => blocked.innerText()).toContain("listing is for people");
  await expect.poll(() => blocked.innerText()).toContain("list_dir");

  // Why, in one click from there, and what it did, in two.
  await blocked.getByRole("link", { name: "Safety webhook" }).click();
  await page.getByRole("tab", { name: "History" }).click();
  await page.getByText("listing is for people").first().click();
  await page.getByTestId("answer").waitFor();
  await expect.poll(() => page.getByTestId("answer").innerText()).toBe("list_dir was refused by Safety webhook: listing is for people");

  await page.getByRole("link", { name: "Safety webhook" }).click();
  await page.getByRole("button", { name: "Switch off" }).click();
  const dialog = page.getByRole("dialog");
  await expect.poll(() => dialog.innerText()).toContain("Calls that match ^list_dir$ are no longer held back by it");
  // A gate is switched off for a reason, which stands beside it.
  await expect.poll(() => dialog.getByRole("button", { name: "Switch off" }).isDisabled()).toBe(true);
  await dialog.getByLabel("Reason").fill("it blocks too much");
  await dialog.getByRole("button", { name: "Switch off" }).click();
  await page.getByText("Off because: it blocks too much").waitFor();
  await page.getByRole("button", { name: "Switch on" }).waitFor();

  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await page.getByRole("button", { name: "New" }).click();
  await say(page, "and now");
  await expect.poll(() => page.locator("[data-kind=call]").first().innerText()).toMatch(/ran\s+list_dir/);
  await context.close();
});

test("what is on is switched off in one place, for a reason, and a form cannot do it; also of what only looks", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/hooks/new", "anna");
  // A new one may begin as one that is off.
  await page.getByLabel("On", { exact: true }).waitFor();
  const id = await rule(page, { name: "watches", event: "stop", handler_type: "script", scope: "tenant", config: { source: "function handle() { return {}; }" } });
  await page.goto(`${gateway.url}/hooks/${id}?tab=edit`);
  await page.getByLabel("Priority").waitFor();
  await expect.poll(() => page.getByLabel("On", { exact: true }).count()).toBe(0);
  for (const action of ["Switch off", "Delete"]) {
    await page.getByRole("button", { name: action, exact: true }).click();
    await expect.poll(() => page.getByRole("dialog").getByRole("button", { name: action }).isDisabled()).toBe(true);
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  }
  // Whoever asks the server without a reason is taken, as the published frame has none, and the log says so.
  const tell = (params: object) => ask(page, "anna", "hooks.update", { hookId: id, ...params });
  expect((await tell({ updates: { enabled: false } })).ok).toBe(true);
  expect((await tell({ updates: { priority: 3 }, reason: "why not" })).error?.message).toContain("these updates do not switch it off");
  await page.getByRole("tab", { name: "Overview" }).click();
  const log = page.getByRole("list", { name: "Change log" });
  await log.getByText("No reason was given.").waitFor();
  expect((await tell({ updates: { enabled: true } })).ok).toBe(true);
  expect((await tell({ updates: { enabled: false }, reason: "a test of it" })).ok).toBe(true);
  await log.getByText("Because: a test of it").waitFor();
  await page.getByText("Off because: a test of it").waitFor();
  await log.getByRole("link", { name: "Version 4" }).click();
  await page.locator('[data-version="4"][aria-current="true"]').getByText("Because: a test of it").waitFor();
  await context.close();
});

test("two people edit one rule: the second sees both sides, and nothing typed is lost", async () => {
  const [one, two] = [await rig.person(), await rig.person()];
  const anna = await signedIn(one, gateway, "/hooks/new", "anna");
  await anna.getByLabel("Name", { exact: true }).fill("shared");
  await anna.getByLabel("URL").fill(service.url);
  await anna.getByRole("button", { name: "Create hook" }).click();
  await anna.getByRole("tab", { name: "Edit" }).click();
  const path = new URL(anna.url()).pathname;
  const ben = await signedIn(two, gateway, `${path}?tab=edit`, "ben");
  await ben.getByLabel("Priority").fill("7");
  await anna.getByLabel("Time limit in ms").fill("3000");
  await anna.getByRole("button", { name: "Save", exact: true }).click();
  await anna.getByText("Saved as version 2").waitFor();
  await ben.getByRole("button", { name: "Save", exact: true }).click();
  const dialog = ben.getByRole("dialog", { name: "Somebody else changed this hook" });
  await dialog.waitFor();
  await expect.poll(() => dialog.getByRole("table").innerText()).toContain('"timeout_ms": 3000');
  await expect.poll(() => dialog.getByRole("table").innerText()).toContain('"priority": 7');
  await dialog.getByRole("button", { name: "Go on editing" }).click();
  await expect.poll(() => ben.getByLabel("Priority").inputValue()).toBe("7");
  await ben.getByRole("button", { name: "Save", exact: true }).click();
  await ben.getByRole("dialog").getByRole("button", { name: "Save mine over it" }).click();
  await ben.getByText("Saved as version 3").waitFor();
  await Promise.all([one.close(), two.close()]);
});

test("a matcher and a condition are checked while they are typed", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/hooks/new", "anna");
  const said = page.getByTestId("check");
  await page.getByLabel("Matcher").fill("^list_dir$");
  await said.getByText("Matches 1 tool: list_dir").waitFor();
  await page.getByLabel("Matcher").fill("^listdir$");
  await said.getByText("Matches no tool").waitFor();
  await page.getByLabel("Matcher").fill("(");
  await said.locator("p.text-block").waitFor();
  await page.getByLabel("Matcher").fill("");
  await page.getByLabel("Condition").fill("tool_name ==");
  await said.locator("p.text-block").waitFor();
  await page.getByLabel("Condition").fill('tool_name == "list_dir"');
  await said.getByText("can be read").waitFor();
  await context.close();
});

test("an earlier version is looked at, and restored", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/hooks/new", "anna");
  await page.getByLabel("Name", { exact: true }).fill("goes back");
  await page.getByLabel("URL").fill(service.url);
  await page.getByRole("button", { name: "Create hook" }).click();
  await page.getByRole("tab", { name: "Edit" }).click();
  await page.getByLabel("Priority").fill("9");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved as version 2").waitFor();
  await page.getByRole("tab", { name: "Versions" }).click();
  await page.getByText("What changed").first().click();
  await expect.poll(() => page.getByRole("table", { name: "Version 1 and version 2" }).innerText()).toContain('"priority": 9');
  await page.getByRole("button", { name: "Restore version 1" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
  await page.getByRole("tabpanel").getByText("Version 3", { exact: true }).first().waitFor();
  await page.getByRole("tab", { name: "Edit" }).click();
  await expect.poll(() => page.getByLabel("Priority").inputValue()).toBe("0");
  await context.close();
});

test("a rewrite is shown side by side, with whether it would apply", async () => {
  const context = await rig.person();
  verdict = { decision: "allow", updatedInput: { path: "elsewhere" } };
  const page = await signedIn(context, gateway, "/hooks/new", "anna");
  await page.getByLabel("URL").fill(service.url);
  await page.getByRole("button", { name: "Run test" }).click();
  await page.getByText("that would not apply").waitFor();
  await expect.poll(() => page.getByRole("table", { name: "Input before and after" }).innerText()).toContain("elsewhere");
  await page.getByLabel("May rewrite").check();
  await page.getByRole("button", { name: "Run test" }).click();
  await page.getByText("that would apply").waitFor();
  verdict = { decision: "block", reason: "listing is for people" };
  await context.close();
});

test("what the server refuses is said with its cause and what to do", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/hooks/new", "anna");
  await page.getByLabel("URL").fill("http://localhost:1/check");
  await page.getByRole("button", { name: "Create hook" }).click();
  await page.locator("[data-cause=ssrf]").waitFor();
  await expect.poll(() => page.getByLabel("URL").inputValue()).toBe("http://localhost:1/check");
  await page.getByLabel("URL").fill("");
  await page.getByRole("button", { name: "Create hook" }).click();
  await page.getByText("This is needed.").waitFor();
  await page.getByLabel("Time limit in ms").fill("10001");
  await page.getByLabel("Time limit in ms").blur();
  await page.getByText("A whole number from 0 to 10000.").waitFor();
  await context.close();
});

test("executions are paged by the cursor and filtered in the address", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/executions?decision=block", "anna");
  await page.getByText("listing is for people").first().waitFor();
  await page.getByLabel("Decision").selectOption("ask");
  await page.getByText("No hook answered anything here").waitFor();
  expect(page.url()).toContain("decision=ask");
  await context.close();
});
