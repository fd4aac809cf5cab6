import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { ask, done, go } from "./people.ts";
import { DONE, endpoint, Gateway, type Reply, Rig, signedIn } from "./rig.ts";

/** How many calls of a tool a turn makes for a history of several pages: more than one page has. */
const MANY = 60;

const lists = (...paths: readonly string[]): Reply => ({ tool_calls: paths.map((path) => ({ name: "list_dir", arguments: { path } })) });
const decides = (decision: string, reason: string): Reply => ({ tool_calls: [{ name: "decide", arguments: { decision, reason } }] });

let rig: Rig;
let lite: Gateway;
let standard: Gateway;
let service: Awaited<ReturnType<typeof endpoint>>;
let page: Page;
let verdict: Record<string, unknown> = {};

/** What the scripted model says, in the order of the tests below. */
const REPLIES: Reply[] = [lists(...Array.from({ length: MANY }, (_, at) => `folder-${at}`)), DONE, ...["a", "b", "c", "d", "e"].map((path) => lists(path)), DONE, lists("first"), lists("second"), DONE];

/** What the model says that hooks ask. */
const JUDGE: Reply[] = [decides("block", "it deletes things"), { text: "I think that this is fine." }, decides("allow", "harmless")];

beforeAll(async () => {
  rig = await Rig.start();
  service = await endpoint(() => verdict);
  const config = `[[agent_hooks.http.allow]]\nhost = "127.0.0.1"\nports = [${service.port}]\n`;
  lite = await Gateway.start({ replies: REPLIES, judge: JUDGE, config });
  standard = await Gateway.start({ replies: [], env: { PINTLE_EDITION: "standard", PINTLE_ENCRYPTION_KEY: "ab".repeat(32) } });
  page = await signedIn(await rig.person(), lite, "/chat", "anna");
});
afterAll(async () => {
  service.server.close();
  await rig.close();
  await Promise.all([lite.close(), standard.close()]);
  expect(rig.complaints).toEqual([]);
});

const result = (): Locator => page.getByTestId("result");
const script = (source: string): object => ({ event: "pre_tool_use", handler_type: "script", scope: "tenant", matcher: "^list_dir$", config: { source } });

async function make(record: object): Promise<string> {
  return String((await done(page, "anna", "hooks.create", record))["hookId"]);
}

async function remove(hookId: string): Promise<void> {
  await done(page, "anna", "hooks.delete", { hookId });
}

/** The row of what a hook did last, on its page. */
async function openLast(hookId: string, text: string): Promise<void> {
  await go(page, `/hooks/${hookId}?tab=history`);
  await page.locator("[data-row]", { hasText: text }).first().click();
  await page.getByTestId("answer").waitFor();
}

test("Navigate to Hooks in the sidebar.", async () => {
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Hooks", exact: true }).click();
  await page.getByRole("heading", { name: "Hooks" }).waitFor();
});

test("Create — pick event, handler type (command greyed out on Standard edition), scope, matcher, then fill the handler-specific sub-form.", async () => {
  const other = await signedIn(await rig.person(), standard, "/hooks/new", "anna");
  await expect.poll(() => other.getByRole("radio", { name: "command" }).isDisabled()).toBe(true);
  await expect.poll(() => other.locator("#no-commands").innerText()).toContain("edition standard runs no commands");
  await page.getByRole("link", { name: "New hook" }).click();
  await page.getByLabel("Name", { exact: true }).fill("by hand");
  await page.getByLabel("Event").selectOption("pre_tool_use");
  await page.getByRole("radio", { name: "command" }).check();
  await page.getByLabel("Scope").selectOption("tenant");
  await page.getByLabel("Matcher").fill("^exec$");
  await page.getByLabel("Command", { exact: true }).fill("cat >&2; echo seen; exit 2");
});

test("Test panel — fires the hook with a sample event (dryRun=true, no audit row written).", async () => {
  await page.getByRole("button", { name: "Run test" }).click();
  await result().getByText("block", { exact: true }).first().waitFor();
  const { executions } = await done(page, "anna", "hooks.history", {});
  expect(executions).toEqual([]);
});

test("Shows decision badge, duration, stdout/stderr (command), status code (http), reason (prompt).", async () => {
  await expect.poll(() => result().innerText()).toMatch(/block[\s\S]*Took[\s\S]*\d+ ms[\s\S]*stdout[\s\S]*seen[\s\S]*stderr[\s\S]*hook_event_name/);
  verdict = { decision: "allow" };
  await page.getByRole("radio", { name: "http" }).check();
  await page.getByLabel("URL").fill(service.url);
  await page.getByRole("button", { name: "Run test" }).click();
  await result().getByText("200", { exact: true }).waitFor();
  await expect.poll(() => result().innerText()).toMatch(/allow[\s\S]*HTTP status[\s\S]*200/);
  await page.getByRole("radio", { name: "prompt" }).check();
  await page.getByLabel("Instruction to the model").fill("Block what deletes.");
  await page.getByRole("button", { name: "Run test" }).click();
  await result().getByText("it deletes things").waitFor();
});

test("If the response includes updatedInput, a side-by-side JSON diff is rendered.", async () => {
  verdict = { decision: "allow", updatedInput: { command: "ls -l" } };
  await page.getByRole("radio", { name: "http" }).check();
  await page.getByRole("button", { name: "Run test" }).click();
  await page.getByText("that would not apply").waitFor();
  const diff = page.getByRole("table", { name: "Input before and after" });
  const [before, after] = [diff.locator("tr", { hasText: "ls" }).locator("td").nth(0), diff.locator("tr", { hasText: "ls" }).locator("td").nth(1)];
  await expect.poll(() => before.innerText()).toContain('"command": "ls"');
  await expect.poll(() => after.innerText()).toContain('"command": "ls -l"');
});

test("History tab — paginated executions from hook_executions.", async () => {
  const id = await make({ ...script("function handle(event) { return { decision: event.toolInput.path === 'folder-7' ? 'block' : 'allow', reason: 'seven' } }"), name: "counts", breaker: "off" });
  await done(page, "anna", "chat.send", { message: "look everywhere" });
  await go(page, `/hooks/${id}?tab=history`);
  await page.locator("[data-row]").first().waitFor();
  // All of them, each once. That pages come by themselves, ten thousand rows long, is in fluid.test.ts.
  const list = page.getByRole("list", { name: "Executions" });
  const seen = new Set<string>();
  await expect
    .poll(
      async () => {
        for (const href of await list.locator("a").evaluateAll((all) => all.map((one) => (one as HTMLAnchorElement).href))) {
          seen.add(href);
        }
        await list.evaluate((element) => element.scrollBy(0, 400));
        return seen.size;
      },
      { timeout: 15_000 },
    )
    .toBeGreaterThan(50);
  await page.getByLabel("Decision").selectOption("block");
  const blocked = page.locator("[data-row]", { hasText: "seven" });
  await expect.poll(() => blocked.count()).toBe(1);
  await blocked.click();
  await page.getByText("list_dir was refused by counts: seven").waitFor();
  await remove(id);
});

test("Overview tab — summary card with event, type, scope, matcher.", async () => {
  const id = await make({ ...script("function handle() { return { decision: 'allow' } }"), name: "shown" });
  await go(page, `/hooks/${id}`);
  await page.getByRole("tab", { name: "Overview" }).waitFor();
  await expect.poll(() => page.getByRole("tabpanel").innerText()).toMatch(/Event\s+pre_tool_use[\s\S]*Handler\s+script[\s\S]*Scope\s+tenant[\s\S]*Matcher\s+\^list_dir\$/);
  await remove(id);
});

test("HTTP hook always returns error: SSRF block on loopback: Use a public/internal URL accessible from the gateway process", async () => {
  await go(page, "/hooks/new?from=notify");
  await page.getByLabel("URL").fill("http://127.0.0.1/hook");
  await page.getByRole("button", { name: "Create hook" }).click();
  const note = page.locator("form [data-cause=ssrf]");
  await expect.poll(() => note.innerText()).toMatch(/on the server itself or in a private network[\s\S]*Use a URL that the server may reach/);
});

test("Prompt hook blocks everything: Evaluator returning free-text (no tool call): Review prompt_template; keep it short + imperative", async () => {
  await go(page, "/hooks/new");
  await page.getByRole("group", { name: "Begin with" }).getByRole("button", { name: "A model judges commands" }).click();
  await page.getByRole("button", { name: "Run test" }).click();
  await expect.poll(() => page.locator("[data-cause=freeText]").innerText()).toMatch(/answered with text instead of a decision[\s\S]*short and imperative/);
});

test("Hook stopped firing: Circuit breaker tripped (5 blocks/min): Fix upstream cause, then re-enable", async () => {
  const id = await make({ ...script("function handle() { return { decision: 'block', reason: 'no' } }"), name: "trips" });
  await done(page, "anna", "chat.send", { message: "look five times" });
  await go(page, `/hooks/${id}`);
  await expect.poll(() => page.locator("[data-cause=tripped]").innerText()).toMatch(/five times in a row within a minute[\s\S]*Remove the cause, then reset/);
  await page.getByRole("button", { name: "Reset" }).click();
  // It says what acts again, before it does.
  await page.getByRole("dialog").getByText("It decides again, from the next event on").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
  await page.locator("[data-cause=tripped]").waitFor({ state: "detached" });
  await remove(id);
});

test("UI command radio greyed out: Standard edition: Use http or prompt, or upgrade to Lite", async () => {
  const other = await signedIn(await rig.person(), standard, "/hooks/new", "anna");
  await expect.poll(() => other.locator("#no-commands").innerText()).toBe("command is not offered: edition standard runs no commands. Use http, prompt or script, or edition lite.");
  const refused = await ask(other, "anna", "hooks.create", { event: "stop", handler_type: "command", scope: "tenant", config: { command: "true" } });
  expect(refused.error?.message).toContain("hook.command_disabled_standard");
});

test("Per-turn cap hit: max_invocations_per_turn too low: Raise in hook config; tighten matcher to reduce LLM calls", async () => {
  const id = await make({ name: "judges", event: "pre_tool_use", handler_type: "prompt", scope: "tenant", matcher: "^list_dir$", config: { prompt_template: "Judge.", max_invocations_per_turn: 1 } });
  await done(page, "anna", "chat.send", { message: "look twice" });
  await openLast(id, "max_invocations_per_turn (1) reached");
  await expect.poll(() => page.locator("[data-cause=cap]").innerText()).toMatch(/as often in this turn as the hook allows[\s\S]*matcher match fewer calls/);
  await remove(id);
});

test("Budget exceeded: Tenant spent monthly token budget: Raise tenant_hook_budget.budget_total or wait for rollover", async () => {
  const owner = await signedIn(await rig.person(), lite, "/health", "system");
  const set = async (total: string): Promise<void> => {
    await owner.getByRole("button", { name: "Change the budget" }).click();
    await owner.getByLabel("Tokens a month").fill(total);
    await owner.getByLabel("Reason").fill(`a month of ${total}`);
    await owner.getByRole("button", { name: "Set the budget" }).click();
    await owner.getByRole("dialog").waitFor({ state: "detached" });
  };
  await set("0");
  try {
    await owner.getByText("The budget for judges is spent.").waitFor();
    await go(page, "/hooks/new?from=judge");
    await page.reload();
    await page.getByRole("button", { name: "Run test" }).click();
    await expect.poll(() => page.locator("[data-cause=budget]").innerText()).toMatch(/spent its token budget[\s\S]*raises the budget[\s\S]*next month/);
  } finally {
    // Whoever walks it once more finds a budget that is not spent.
    await set("1000000");
  }
  await owner.getByText(/of 1,000,000 tokens are used/).waitFor();
  await go(owner, "/hooks/changes");
  await owner.getByText("Because: a month of 1000000").waitFor();
  await owner.getByText("Budget for judges").first().waitFor();
});

test("handler_type, event, and scope are required: Missing fields in create payload: Include all three required fields", async () => {
  const refused = await ask(page, "anna", "hooks.create", { name: "x", config: {} });
  expect(refused.error).toMatchObject({ code: "INVALID_REQUEST", message: "handler_type, event, and scope are required" });
  await go(page, "/hooks/new");
  // The form has all three, and none can be empty. A file can lack them: then it is said what to do, in the words of the table.
  await expect.poll(() => page.getByLabel("Event").inputValue()).not.toBe("");
  await expect.poll(() => page.getByLabel("Scope").inputValue()).not.toBe("");
  await expect.poll(() => page.getByRole("radio", { checked: true }).count()).toBe(1);
  await go(page, "/hooks/import");
  await page.getByLabel("Or paste it here").fill(JSON.stringify({ name: "x", config: {} }));
  await expect.poll(() => page.getByRole("table", { name: "Records of the file" }).locator('tr[data-name="x"]').innerText()).toMatch(/refused/);
  await expect.poll(() => page.locator("[data-cause=required]").innerText()).toMatch(/needs an event, a handler and a scope[\s\S]*Include all three: handler_type, event and scope/);
});
