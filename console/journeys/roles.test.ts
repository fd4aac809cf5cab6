import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { type Answer, ask, done, go, outside, parks, ROLES, type Role, userOf } from "./people.ts";
import { DONE, Gateway, LISTS, type Reply, Rig, scripted, signedIn, TOKEN } from "./rig.ts";

let rig: Rig;
let gateway: Gateway;
let hook: string;
let global: string;
let tripped: string;
/** What another tenant has. */
let foreign: string;
/** Who was refused a call in their conversation, and in which turn. */
const turns: Partial<Record<Role, string>> = {};
/** Whose call waits, and under which id. */
const waits: Partial<Record<Role, string>> = {};

const SCRIPT = { event: "pre_tool_use", handler_type: "script", matcher: "^list_dir$", config: { source: "function handle() { return { decision: 'allow' } }" } };
const NOWHERE = "00000000-0000-4000-8000-000000000000";
const TALK = ["operator", "admin", "owner"] as const;

const asks: Reply = { tool_calls: [{ name: "read_file", arguments: { path: "a.txt" } }] };
const finds: Reply = { tool_calls: Array.from({ length: 5 }, (_, at) => ({ name: "find_files", arguments: { pattern: `${at}` } })) };

beforeAll(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({
    replies: [finds, DONE, ...TALK.flatMap(() => [LISTS, DONE]), ...TALK.map(() => asks), DONE, DONE, DONE],
    agent: 'tools = ["list_dir", "read_file", "find_files"]\nask = ["read_file"]\n',
    env: { PINTLE_EDITION: "standard", PINTLE_ENCRYPTION_KEY: "ab".repeat(32), HOOKS_SECRET: `whsec_${Buffer.alloc(24, 1).toString("base64")}` },
    // Nobody is there: what happens waits to be told.
    config: '[[gateway.webhooks]]\nurl = "https://nobody.invalid/pintle"\nevents = ["approval.created"]\nsecret_env = "HOOKS_SECRET"\n',
  });
  const page = await outside(await rig.person(), gateway);
  for (const role of ["viewer", "operator", "admin"]) {
    await done(page, "system", "members.add", { userId: `a-${role}`, role });
  }
  const made = async (record: object): Promise<string> => String((await done(page, "system", "hooks.create", record))["hookId"]);
  hook = await made({ ...SCRIPT, name: "own", scope: "tenant" });
  await done(page, "system", "hooks.update", { hookId: hook, updates: { priority: 1 } });
  global = await made({ ...SCRIPT, name: "everywhere", scope: "global" });
  await made(scripted("refuses", "^list_dir$", { decision: "block", reason: "no" }, { breaker: "off" }));
  tripped = await made(scripted("trips", "^find_files$", { decision: "block", reason: "no" }));
  await done(page, "system", "chat.send", { message: "look five times", agentId: "main", sessionKey: "agent:main:ws:direct:trips" });
  for (const role of TALK) {
    const sessionKey = `agent:main:ws:direct:of-${role}`;
    await done(page, userOf(role), "chat.send", { message: "look", agentId: "main", sessionKey });
    const { turns: found } = (await done(page, userOf(role), "turns.list", { sessionKey })) as { turns: { turnId: string }[] };
    turns[role] = found[0]?.turnId ?? "";
  }
  for (const role of TALK) {
    waits[role] = await parks(page, userOf(role), "read", `waits-${role}`);
  }
  await done(page, "system", "tenants.create", { slug: "acme", name: "Acme" });
  const theirs = await ask(page, "system", "hooks.create", { ...SCRIPT, name: "theirs", scope: "tenant" }, TOKEN, "acme");
  foreign = String(theirs.payload?.["hookId"]);
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

/** Something that is done: where it stands, what it looks like there, who may at least, and how the server is asked for it. */
interface Deed {
  readonly name: string;
  readonly path: (role: Role) => string;
  readonly seen: (page: Page) => Promise<boolean>;
  /** Where the page is when it is whole. */
  readonly whole: (page: Page) => Promise<void>;
  readonly least: Role;
  readonly method: string;
  readonly params: (role: Role) => object;
  /** Whether the server let somebody, where its refusal is no error. */
  readonly let?: (answer: Answer) => boolean;
}

const has = (find: (page: Page) => ReturnType<Page["getByRole"]>) => async (page: Page) => (await find(page).count()) > 0;
const button = (name: string | RegExp) => has((page) => page.getByRole("main").getByRole("button", { name }));
const headed = async (page: Page): Promise<void> => page.locator("main h1:visible, main section:visible").first().waitFor();
const row = async (page: Page): Promise<void> => page.locator("[data-row]").first().waitFor();
const tab = async (page: Page): Promise<void> => page.getByRole("tab", { name: "History" }).waitFor();
const budget = async (page: Page): Promise<void> => page.getByTestId("budget").waitFor();
const part = (name: string) => ({ path: () => "/settings", seen: has((page) => page.getByRole("navigation", { name: "Settings" }).getByRole("link", { name })), whole: headed });
/** The call that waits of somebody: of those who have none, another's. */
const waiting = (role: Role): string => waits[role] ?? waits.admin ?? "";
/** How the page is whole where something is not for a role: it says that it is not there. */
const approval = async (page: Page): Promise<void> => page.getByTestId("call").or(page.getByText("There is no such approval")).or(page.getByText("requires operator role")).first().waitFor();
const isHidden = ({ payload }: Answer): boolean => (payload?.["hook"] as { config_hidden?: boolean } | undefined)?.config_hidden === true;
const switches = async (page: Page): Promise<boolean> => {
  await page.getByRole("button", { name: /^(a-|system)/ }).click();
  await page.getByRole("menu").waitFor();
  const found = await page.getByRole("menuitem", { name: "Acme" }).count();
  await page.keyboard.press("Escape");
  await page.getByRole("menu").waitFor({ state: "detached" });
  return found > 0;
};

const DEEDS: readonly Deed[] = [
  { name: "make a hook", path: () => "/hooks", seen: has((page) => page.getByRole("link", { name: "New hook" })), whole: row, least: "admin", method: "hooks.create", params: () => ({ ...SCRIPT, scope: "agent", agent_ids: [] }) },
  { name: "take hooks from a file", path: () => "/hooks", seen: has((page) => page.getByRole("link", { name: "Import" })), whole: row, least: "admin", method: "hooks.import", params: () => ({ hooks: [], dryRun: true }) },
  { name: "change a hook", path: () => `/hooks/${hook}`, seen: has((page) => page.getByRole("tab", { name: "Edit" })), whole: tab, least: "admin", method: "hooks.update", params: () => ({ hookId: NOWHERE, updates: { name: "x" } }) },
  { name: "restore a version", path: () => `/hooks/${hook}?tab=versions`, seen: button("Restore version 1"), whole: async (page) => page.locator("ol li").first().waitFor(), least: "admin", method: "hooks.restore", params: () => ({ hookId: NOWHERE, version: 1 }) },
  { name: "switch a hook off", path: () => `/hooks/${hook}`, seen: button("Switch off"), whole: tab, least: "admin", method: "hooks.toggle", params: () => ({ hookId: NOWHERE, enabled: false, reason: "x" }) },
  { name: "reset a breaker", path: () => `/hooks/${tripped}`, seen: button("Reset"), whole: tab, least: "admin", method: "hooks.reset", params: () => ({ hookId: NOWHERE }) },
  { name: "delete a hook", path: () => `/hooks/${hook}`, seen: button("Delete"), whole: tab, least: "admin", method: "hooks.delete", params: () => ({ hookId: NOWHERE, reason: "x" }) },
  { name: "try a hook", path: () => `/hooks/${hook}`, seen: button("Run test"), whole: tab, least: "operator", method: "hooks.test", params: () => ({ hookId: NOWHERE, sampleEvent: {} }) },
  { name: "change a global hook", path: () => `/hooks/${global}`, seen: has((page) => page.getByRole("tab", { name: "Edit" })), whole: tab, least: "owner", method: "hooks.update", params: () => ({ hookId: global, updates: { priority: 1 } }) },
  { name: "see the settings of a global hook", path: () => `/hooks/${global}`, seen: async (page) => (await page.getByText("Only owners see the settings").count()) === 0, whole: tab, least: "owner", method: "hooks.get", params: () => ({ hookId: global }), let: (answer) => !isHidden(answer) },
  { name: "answer approvals", path: () => "/hooks", seen: has((page) => page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Approvals" })), whole: row, least: "operator", method: "approvals.list", params: () => ({}) },
  { name: "approve a call", path: (role) => `/approvals/${waiting(role)}`, seen: button("Approve once"), whole: approval, least: "operator", method: "approvals.approve", params: () => ({ id: "nothing" }) },
  { name: "refuse a call", path: (role) => `/approvals/${waiting(role)}`, seen: button("Refuse"), whole: approval, least: "operator", method: "approvals.refuse", params: () => ({ id: "nothing" }) },
  { name: "let a call through once", path: (role) => `/turns/${turns[role] ?? turns.admin ?? ""}`, seen: button("Let it through once…"), whole: async (page) => page.getByTestId("detail").or(page.getByText("There is no such turn")).first().waitFor(), least: "admin", method: "hooks.create", params: () => ({ ...SCRIPT, scope: "agent", agent_ids: [] }) },
  { name: "talk", path: () => "/chat", seen: button("New"), whole: headed, least: "operator", method: "chat.send", params: () => ({ message: "", agentId: "nobody" }) },
  { name: "members", ...part("Members"), least: "admin", method: "members.list", params: () => ({}) },
  { name: "keys", ...part("API keys"), least: "admin", method: "api_keys.list", params: () => ({}) },
  { name: "tenants", ...part("Tenants"), least: "owner", method: "tenants.list", params: () => ({}) },
  { name: "go to another tenant", path: () => "/chain", seen: switches, whole: headed, least: "owner", method: "tenants.list", params: () => ({}) },
  { name: "webhooks", ...part("Webhooks"), least: "owner", method: "webhooks.list", params: () => ({}) },
  { name: "tell again what was not told", path: () => "/settings/webhooks", seen: button(/^Try all again|^Try again/), whole: headed, least: "owner", method: "webhooks.retry", params: () => ({ id: "nothing" }) },
  { name: "the budget", path: () => "/health", seen: button("Change the budget"), whole: budget, least: "owner", method: "hooks.budget.set", params: () => ({ tenantId: NOWHERE, budgetTotal: 1, reason: "x" }) },
  { name: "nodes", path: () => "/health", seen: has((page) => page.getByRole("table", { name: "Nodes" })), whole: budget, least: "owner", method: "nodes.list", params: () => ({}) },
  { name: "run doctor", path: () => "/health", seen: button("Run doctor"), whole: budget, least: "owner", method: "doctor.run", params: () => ({ unknown: true }) },
  { name: "own devices", path: () => "/settings", seen: has((page) => page.getByRole("table", { name: "Where you are signed in" })), whole: async (page) => page.getByRole("table").waitFor(), least: "viewer", method: "auth.sessions.list", params: () => ({}) },
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
    await go(page, deed.path(role));
    await deed.whole(page);
    if (may) {
      // What is allowed comes with the answers of the server.
      await expect.poll(() => deed.seen(page), { message: `${role} may ${deed.name}` }).toBe(true);
    } else if (await deed.seen(page)) {
      wrong.push(`${deed.name} is offered`);
    }
    const answer = await ask(page, userOf(role), deed.method, deed.params(role));
    const { ok, error } = answer;
    const isLet = deed.let?.(answer) ?? !isRefused(error);
    if (isLet !== may || (ok && !may && deed.let === undefined)) {
      wrong.push(`${deed.name}: ${deed.method} says ${ok ? "ok" : `${error?.code} ${error?.message}`}`);
    }
  }
  expect(wrong).toEqual([]);
  await context.close();
}, 120_000);

test("an address of what another tenant, another user or another role has says that it is not there, as one of nothing does", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/settings/tenants", "a-viewer");
  await page.getByText("There is no such setting").waitFor();
  await go(page, "/settings/keys");
  await page.getByText("There is no such setting").waitFor();
  await context.close();
  const other = await rig.person();
  const operator = await signedIn(other, gateway, "/chain", "a-operator");
  const told: [string, string][] = [
    ["/hooks", "There is no such hook"],
    ["/turns", "There is no such turn"],
    ["/approvals", "There is no such approval"],
  ];
  const seen: Record<string, string> = {};
  for (const [path, id] of [["/hooks", foreign], ["/hooks", NOWHERE], ["/turns", turns.admin ?? ""], ["/turns", NOWHERE], ["/approvals", waits.admin ?? ""], ["/approvals", NOWHERE]] as const) {
    await go(operator, "/chain");
    await operator.getByRole("heading", { name: "Chain" }).waitFor();
    await go(operator, `${path}/${id}`);
    await operator.getByText(told.find(([at]) => at === path)?.[1] ?? "").waitFor();
    // Nothing tells one that is there from one that is not.
    seen[path] ??= await operator.getByRole("main").innerText();
    await expect.poll(() => operator.getByRole("main").innerText()).toBe(seen[path]);
  }
  // They are there: for whom they are.
  await go(operator, `/turns/${turns.operator}`);
  await operator.getByRole("tree").waitFor();
  await go(operator, `/approvals/${waits.operator}`);
  await operator.getByTestId("call").waitFor();
  await other.close();
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
