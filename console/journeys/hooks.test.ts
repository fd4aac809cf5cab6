import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { en } from "../src/words/en.ts";
import { ask, done, editor, write } from "./people.ts";
import { DONE, endpoint, Gateway, LISTS, Rig, rule, scripted, signedIn, TOKEN } from "./rig.ts";

/** How many calls a turn makes for a list of several pages: more than one page has. */
const MANY = 60;

let rig: Rig;
let gateway: Gateway;
let service: Awaited<ReturnType<typeof endpoint>>;
let verdict: Record<string, unknown> = { decision: "block", reason: "listing is for people" };

beforeAll(async () => {
  rig = await Rig.start();
  service = await endpoint(() => verdict);
  gateway = await Gateway.start({
    agent: 'tools = ["list_dir", "find_files", "exec"]\n\n[agents.watcher]\nmodel = "scripted/test"\ntools = ["list_dir"]\n',
    replies: [LISTS, DONE, LISTS, DONE],
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
  expect(await dialog.innerText()).toContain("Required, at most 32 characters.");
  await dialog.getByLabel("Reason").fill("it blocks too much, and nobody knows why");
  await dialog.getByText("At most 32 characters: this has 40.").waitFor();
  await expect.poll(() => dialog.getByRole("button", { name: "Switch off" }).isDisabled()).toBe(true);
  await dialog.getByLabel("Reason").fill("it blocks too much");
  await dialog.getByLabel("Reason").press("Enter");
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
  const tell = (method: string, params: object) => ask(page, "anna", method, { hookId: id, ...params });
  expect((await tell("hooks.update", { updates: { enabled: false } })).ok).toBe(true);
  expect((await tell("hooks.update", { updates: { priority: 3 }, reason: "why not" })).error?.message).toContain("these updates do not switch it off");
  await page.getByRole("tab", { name: "Overview" }).click();
  const log = page.getByRole("list", { name: "Change log" });
  await log.getByText("No reason was given.").waitFor();
  expect((await tell("hooks.toggle", { enabled: true })).ok).toBe(true);
  expect((await tell("hooks.update", { updates: { enabled: false }, reason: "a test of it" })).ok).toBe(true);
  await log.getByText("Because: a test of it").waitFor();
  await page.getByText("Off because: a test of it").waitFor();
  // A version has an address, which opens at it, for somebody else too.
  await log.getByRole("link", { name: "Version 4" }).click();
  const fourth = page.locator('[data-version="4"][aria-current="true"]');
  await fourth.getByText("Because: a test of it").waitFor();
  const ben = await signedIn(await rig.person(), gateway, new URL(page.url()).pathname + new URL(page.url()).search, "ben");
  await ben.locator('[data-version="4"][aria-current="true"] details[open]').waitFor();
  await ben.goto(`${gateway.url}/hooks/${id}?tab=versions&version=9`);
  await ben.getByText("There is no version 9 of this hook").waitFor();
  await ben.context().close();
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
  const dialog = ben.getByRole("dialog", { name: "anna changed this hook" });
  await dialog.waitFor();
  await expect.poll(() => dialog.getByRole("table").innerText()).toContain('"timeout_ms": 3000');
  await expect.poll(() => dialog.getByRole("table").innerText()).toContain('"priority": 7');
  // Only what was touched here is changed.
  await dialog.getByTestId("conflict-result").getByText("changes only this in version 2: Priority.").waitFor();
  await dialog.getByRole("button", { name: "Keep editing" }).click();
  await expect.poll(() => ben.getByLabel("Priority").inputValue()).toBe("7");
  await ben.getByRole("button", { name: "Save", exact: true }).click();
  await ben.getByRole("dialog").getByRole("button", { name: "Overwrite with mine" }).click();
  await ben.getByText("Saved as version 3").waitFor();
  await expect.poll(() => ben.getByLabel("Time limit in ms").inputValue()).toBe("3000");
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
  await write(page, "Condition", "tool_name ==");
  await said.locator("p.text-block").waitFor();
  // What is wrong is marked where it is wrong, for the eye and for readers of the screen.
  const condition = editor(page, "Condition");
  await condition.locator(".cm-wrong", { hasText: /^==$/ }).waitFor();
  await expect.poll(() => condition.getAttribute("aria-invalid")).toBe("true");
  await write(page, "Condition", 'tool_nam == "list_dir"');
  await condition.locator(".cm-wrong", { hasText: /^tool_nam$/ }).waitFor();
  // What may stand there is offered.
  await page.keyboard.press("Control+a");
  await page.keyboard.type("raw_to");
  await page.getByRole("listbox", { name: en.editor.completions }).getByRole("option", { name: /raw_tool_name/, selected: true }).click();
  await expect.poll(() => condition.innerText()).toBe("raw_tool_name");
  await write(page, "Condition", 'tool_name == "list_dir"');
  await said.getByText("is valid").waitFor();
  await condition.locator(".cm-wrong").waitFor({ state: "detached" });
  expect(await condition.getAttribute("aria-invalid")).toBeNull();
  // The label leads to it, and Tab out of it.
  await page.locator("label", { hasText: /^Condition$/ }).click();
  await expect.poll(() => condition.evaluate((one) => one.matches(":focus"))).toBe(true);
  await page.keyboard.press("Tab");
  await expect.poll(() => page.getByLabel("Time limit in ms").evaluate((one) => one.matches(":focus"))).toBe(true);
  // Of one agent, its own tools count.
  await page.getByLabel("Scope").selectOption("agent");
  await page.getByLabel("watcher", { exact: true }).check();
  await page.getByLabel("Matcher").fill("^(exec|list_dir)$");
  await said.getByText("Matches 1 tool of watcher: list_dir").waitFor();
  await page.getByLabel("Matcher").fill("^exec$");
  await said.getByText("Matches no tool of watcher.").waitFor();
  await page.getByLabel("main", { exact: true }).check();
  await said.getByText("Matches 1 tool of watcher, main: exec").or(said.getByText("Matches 1 tool of main, watcher: exec")).waitFor();
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
  // It shows what becomes of today's settings.
  await expect.poll(() => page.getByRole("table", { name: "Version 2 as it is and as version 1 makes it" }).innerText()).toMatch(/"priority": 9[\s\S]*"priority": 0/);
  await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
  await page.getByRole("tabpanel").getByText("Version 3", { exact: true }).first().waitFor();
  await page.getByRole("tab", { name: "Edit" }).click();
  await expect.poll(() => page.getByLabel("Priority").inputValue()).toBe("0");
  await context.close();
});

test("a test begins with what the tool needs, or with an event that happened, and shows what kind of fault there was", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/hooks/new", "anna");
  await page.getByLabel("URL").fill(service.url);
  const input = page.locator(".cm-content").last();
  await input.waitFor();
  const tool = page.getByLabel("Tool", { exact: true });
  await tool.fill("edit_file");
  await expect.poll(() => input.innerText()).toMatch(/"path": "notes.md",\s+"old_text": "one",\s+"new_text": "two"/);
  await tool.fill("read_file");
  await expect.poll(() => input.innerText()).toContain("README.md");
  // What somebody typed stays.
  await input.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText('{"path": "mine"}');
  await tool.fill("exec");
  await expect.poll(() => input.innerText()).toContain("mine");
  // One that happened: the call of the turns before.
  await page.getByRole("button", { name: "Use a past event" }).click();
  const past = page.getByLabel("Past event");
  const value = await past.locator("option", { hasText: "list_dir" }).first().getAttribute("value");
  await past.selectOption(value ?? "");
  await expect.poll(() => tool.inputValue()).toBe("list_dir");
  await expect.poll(() => input.innerText()).toMatch(/"path": "\."/);
  await page.getByRole("button", { name: "Run test" }).click();
  await page.getByTestId("result").getByText("listing is for people").waitFor();
  // A message that happened.
  await page.getByLabel("Event", { exact: true }).selectOption("user_prompt_submit");
  const message = await past.locator("option", { hasText: "look around" }).first().getAttribute("value");
  await past.selectOption(message ?? "");
  await expect.poll(() => page.getByLabel("Message", { exact: true }).inputValue()).toBe("look around");
  // What went wrong, and of which kind it is.
  verdict = { decision: "perhaps" };
  await page.getByRole("button", { name: "Run test" }).click();
  await expect.poll(() => page.getByTestId("result").innerText()).toMatch(/Kind of fault\s+unreadable answer/);
  verdict = { decision: "block", reason: "listing is for people" };
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
  await page.getByLabel("URL").fill("http://127.0.0.1/check");
  await page.getByRole("button", { name: "Create hook" }).click();
  await page.locator("[data-cause=ssrf]").waitFor();
  await expect.poll(() => page.getByLabel("URL").inputValue()).toBe("http://127.0.0.1/check");
  await page.getByLabel("URL").fill("");
  await page.getByRole("button", { name: "Create hook" }).click();
  await page.getByText("This field is required.").waitFor();
  await page.getByLabel("Time limit in ms").fill("10001");
  await page.getByLabel("Time limit in ms").blur();
  await page.getByText("A whole number from 0 to 10000.").waitFor();
  await page.getByRole("radio", { name: "prompt" }).check();
  await page.getByLabel("Calls per turn").fill("101");
  await page.getByLabel("Calls per turn").blur();
  await page.getByText("A whole number from 1 to 100.").waitFor();
  await context.close();
});

test("executions are paged by the cursor and filtered in the address", async () => {
  const own = await Gateway.start({ replies: [{ tool_calls: Array.from({ length: MANY }, (_, at) => ({ name: "list_dir", arguments: { path: `${at}` } })) }, DONE], agent: 'tools = ["list_dir"]\n' });
  const context = await rig.person();
  const page = await context.newPage();
  const cursors: string[] = [];
  page.on("websocket", (socket) =>
    socket.on("framesent", ({ payload }) => {
      const { method, params } = JSON.parse(String(payload)) as { method: string; params: { cursor?: string } };
      if (method === "hooks.history" && params.cursor !== undefined) {
        cursors.push(params.cursor);
      }
    }),
  );
  await page.goto(`${own.url}/executions`);
  await page.locator("input[name=token]").fill(TOKEN);
  await page.locator("input[name=user]").fill("anna");
  await page.locator("button[type=submit]").click();
  await page.getByText("No rule answered anything here").or(page.locator("[data-row]").first()).first().waitFor();
  const counts = await rule(page, scripted("counts", "^list_dir$", { decision: "allow" }));
  await done(page, "anna", "chat.send", { message: "find everything", agentId: "main" });
  const { executions } = (await done(page, "anna", "hooks.history", { hookId: counts, limit: 200 })) as { executions: { id: string }[] };
  expect(executions).toHaveLength(MANY);
  await page.goto(`${own.url}/executions?hook=${counts}`);
  const list = page.getByRole("list", { name: "Executions" });
  await list.waitFor();
  const seen = new Set<string>();
  await expect
    .poll(async () => {
      for (const href of await list.locator("a").evaluateAll((all) => all.map((one) => (one as HTMLAnchorElement).pathname.split("/").pop() ?? ""))) {
        seen.add(href);
      }
      await list.evaluate((element) => element.scrollBy(0, 400));
      return [...seen].sort();
    })
    .toEqual(executions.map(({ id }) => id).sort());
  expect(new Set(cursors).size).toBeGreaterThan(0);
  // A filter stands in the address, and comes from it.
  await page.goto(`${own.url}/executions?decision=allow`);
  await list.waitFor();
  await page.getByLabel("Decision").selectOption("ask");
  await page.getByText("No rule answered anything here").waitFor();
  await expect.poll(() => page.url()).toContain("decision=ask");
  await context.close();
  await own.close();
});

test("what a template wrote goes with its event, and what somebody typed stays", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/hooks/new?from=forcePush", "anna");
  const [name, matcher, event] = [page.getByLabel("Name", { exact: true }), page.getByLabel("Matcher"), page.getByLabel("Event", { exact: true })];
  await expect.poll(() => matcher.inputValue()).toBe("^exec$");
  await name.fill("mine");
  await event.selectOption("user_prompt_submit");
  await expect.poll(() => matcher.inputValue()).toBe("");
  await expect.poll(() => editor(page, "Script").innerText()).not.toContain("git");
  expect(await name.inputValue()).toBe("mine");
  await event.selectOption("pre_tool_use");
  await expect.poll(() => matcher.inputValue()).toBe("^exec$");
  await expect.poll(() => editor(page, "Script").innerText()).toContain("git");
  expect(await name.inputValue()).toBe("mine");
  await context.close();
});

test("what was typed in a form is there again after the session ended and somebody signed in anew", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/hooks/new", "dora");
  await page.getByLabel("Name", { exact: true }).fill("half done");
  await page.getByLabel("Priority").fill("12");
  // Another device of hers ends every session of hers.
  const other = await rig.person();
  const there = await signedIn(other, gateway, "/settings", "dora");
  await there.getByRole("button", { name: "Sign out there" }).click();
  await page.locator("input[name=token]").waitFor();
  await page.locator("input[name=token]").fill(TOKEN);
  await page.locator("input[name=user]").fill("dora");
  await page.locator("button[type=submit]").click();
  await expect.poll(() => page.getByLabel("Name", { exact: true }).inputValue()).toBe("half done");
  await expect.poll(() => page.getByLabel("Priority").inputValue()).toBe("12");
  // It is hers: whoever else signs in there begins with nothing.
  await page.getByRole("button", { name: /dora/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.locator("input[name=token]").fill(TOKEN);
  await page.locator("input[name=user]").fill("emil");
  await page.locator("button[type=submit]").click();
  await page.locator("nav").first().waitFor();
  await expect.poll(() => page.getByLabel("Name", { exact: true }).inputValue()).toBe("");
  await Promise.all([context.close(), other.close()]);
});
