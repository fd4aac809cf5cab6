import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { ask, done, go, outside, ROLES, type Role, userOf } from "./people.ts";
import { Gateway, Rig, signedIn } from "./rig.ts";

let rig: Rig;
let gateway: Gateway;
let hook: string;
let global: string;

const SCRIPT = { event: "pre_tool_use", handler_type: "script", matcher: "^list_dir$", config: { source: "function handle() { return { decision: 'allow' } }" } };
const NOWHERE = "00000000-0000-4000-8000-000000000000";

beforeAll(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({ replies: [], env: { PINTLE_EDITION: "standard", PINTLE_ENCRYPTION_KEY: "ab".repeat(32) } });
  const page = await outside(await rig.person(), gateway);
  for (const role of ["viewer", "operator", "admin"]) {
    await done(page, "system", "members.add", { userId: `a-${role}`, role });
  }
  hook = String((await done(page, "system", "hooks.create", { ...SCRIPT, name: "own", scope: "tenant" }))["hookId"]);
  global = String((await done(page, "system", "hooks.create", { ...SCRIPT, name: "everywhere", scope: "global" }))["hookId"]);
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

/** Something that is done: where it stands, what it looks like there, who may at least, and how the server is asked for it. */
interface Deed {
  readonly name: string;
  readonly path: () => string;
  readonly seen: (page: Page) => Promise<boolean>;
  /** Where the page is when it is whole. */
  readonly whole: (page: Page) => Promise<void>;
  readonly least: Role;
  readonly method: string;
  readonly params: () => object;
}

const has = (find: (page: Page) => ReturnType<Page["getByRole"]>) => async (page: Page) => (await find(page).count()) > 0;
const headed = async (page: Page): Promise<void> => page.locator("main h1:visible, main section:visible").first().waitFor();
const row = async (page: Page): Promise<void> => page.locator("[data-row]").first().waitFor();
const tab = async (page: Page): Promise<void> => page.getByRole("tab", { name: "History" }).waitFor();
const part = (name: string) => ({ path: () => "/settings", seen: has((page) => page.getByRole("navigation", { name: "Settings" }).getByRole("link", { name })), whole: headed });

const DEEDS: readonly Deed[] = [
  { name: "make a hook", path: () => "/hooks", seen: has((page) => page.getByRole("link", { name: "New hook" })), whole: row, least: "admin", method: "hooks.create", params: () => ({ ...SCRIPT, scope: "agent", agent_ids: [] }) },
  { name: "change a hook", path: () => `/hooks/${hook}`, seen: has((page) => page.getByRole("tab", { name: "Edit" })), whole: tab, least: "admin", method: "hooks.update", params: () => ({ hookId: NOWHERE, updates: { name: "x" } }) },
  { name: "switch a hook off", path: () => `/hooks/${hook}`, seen: has((page) => page.getByRole("button", { name: "Switch off" })), whole: tab, least: "admin", method: "hooks.toggle", params: () => ({ hookId: NOWHERE, enabled: false }) },
  { name: "delete a hook", path: () => `/hooks/${hook}`, seen: has((page) => page.getByRole("button", { name: "Delete" })), whole: tab, least: "admin", method: "hooks.delete", params: () => ({ hookId: NOWHERE }) },
  { name: "try a hook", path: () => `/hooks/${hook}`, seen: has((page) => page.getByRole("button", { name: "Run test" })), whole: tab, least: "operator", method: "hooks.test", params: () => ({ hookId: NOWHERE, sampleEvent: {} }) },
  { name: "change a global hook", path: () => `/hooks/${global}`, seen: has((page) => page.getByRole("tab", { name: "Edit" })), whole: tab, least: "owner", method: "hooks.update", params: () => ({ hookId: global, updates: { priority: 1 } }) },
  { name: "see the settings of a global hook", path: () => `/hooks/${global}`, seen: async (page) => (await page.getByText("Only owners see the settings").count()) === 0, whole: tab, least: "owner", method: "hooks.budget.set", params: () => ({ tenantId: NOWHERE, budgetTotal: 1 }) },
  { name: "answer approvals", path: () => "/hooks", seen: has((page) => page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Approvals" })), whole: row, least: "operator", method: "approvals.list", params: () => ({}) },
  { name: "talk", path: () => "/chat", seen: has((page) => page.getByRole("button", { name: "New" })), whole: headed, least: "operator", method: "chat.send", params: () => ({ message: "", agentId: "nobody" }) },
  { name: "members", ...part("Members"), least: "admin", method: "members.list", params: () => ({}) },
  { name: "keys", ...part("API keys"), least: "admin", method: "api_keys.list", params: () => ({}) },
  { name: "tenants", ...part("Tenants"), least: "owner", method: "tenants.list", params: () => ({}) },
  { name: "webhooks", ...part("Webhooks"), least: "owner", method: "webhooks.list", params: () => ({}) },
  { name: "the budget", path: () => "/health", seen: has((page) => page.getByRole("button", { name: "Change the budget" })), whole: async (page) => page.getByTestId("budget").waitFor(), least: "owner", method: "hooks.budget.set", params: () => ({ tenantId: NOWHERE, budgetTotal: 1 }) },
  { name: "nodes", path: () => "/health", seen: has((page) => page.getByRole("table", { name: "Nodes" })), whole: async (page) => page.getByTestId("budget").waitFor(), least: "owner", method: "nodes.list", params: () => ({}) },
  { name: "own devices", path: () => "/settings", seen: has((page) => page.getByRole("table", { name: "Where you are signed in" })), whole: async (page) => page.getByRole("table").waitFor(), least: "viewer", method: "hooks.list", params: () => ({}) },
];

/** Whether a refusal is about who somebody is, and not about what they said. */
const isRefused = (error: { readonly code: string; readonly message: string } | undefined): boolean => error?.code === "UNAUTHORIZED" && /permission denied|requires/.test(error.message);

test.each(ROLES)("%s: what the role may not do is absent in the page, and the server refuses it", async (role) => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/hooks", userOf(role));
  await expect.poll(() => page.getByTestId("role").innerText()).toContain(role);
  const wrong: string[] = [];
  for (const deed of DEEDS) {
    const may = ROLES.indexOf(role) >= ROLES.indexOf(deed.least);
    await go(page, deed.path());
    await deed.whole(page);
    if (may) {
      // What is allowed comes with the answers of the server.
      await expect.poll(() => deed.seen(page), { timeout: 5_000, message: `${role} may ${deed.name}` }).toBe(true);
    } else if (await deed.seen(page)) {
      wrong.push(`${deed.name} is offered`);
    }
    const { ok, error } = await ask(page, userOf(role), deed.method, deed.params());
    if (isRefused(error) === may || (ok && !may)) {
      wrong.push(`${deed.name}: ${deed.method} says ${ok ? "ok" : `${error?.code} ${error?.message}`}`);
    }
  }
  expect(wrong).toEqual([]);
  await context.close();
});

test("an address of what somebody may not see says that it is not there", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/settings/tenants", "a-viewer");
  await page.getByText("There is no such setting").waitFor();
  await go(page, "/settings/keys");
  await page.getByText("There is no such setting").waitFor();
  await go(page, `/hooks/${NOWHERE}`);
  await page.getByText("There is no such hook").waitFor();
  await context.close();
});

test("the role is in sight on a telephone, too", async () => {
  const context = await rig.person({ viewport: { width: 360, height: 740 } });
  const page = await signedIn(context, gateway, "/hooks", "a-viewer");
  await expect.poll(() => page.getByTestId("role").isVisible()).toBe(true);
  await page.getByRole("button", { name: /More/ }).click();
  await page.getByRole("menuitem", { name: "Settings" }).click();
  await page.getByText("You are a-viewer, viewer in Default.").waitFor();
  await context.close();
});
