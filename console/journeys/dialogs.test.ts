import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { en } from "../src/words/en.ts";
import { zh } from "../src/words/zh.ts";
import { done, findings, go, outside } from "./people.ts";
import { DONE, Gateway, LISTS, Rig, scripted, signedIn } from "./rig.ts";

type Words = typeof en;

let rig: Rig;
let gateway: Gateway;
let hook: string;
let refused: string;
/** The version of the hook that was saved last. */
let saved = 2;

beforeAll(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({ replies: [undefined, ...LOOKS].flatMap(() => [LISTS, DONE]), agent: 'tools = ["list_dir"]\n', env: { PINTLE_EDITION: "standard", PINTLE_ENCRYPTION_KEY: "ab".repeat(32) } });
  const page = await outside(await rig.person(), gateway);
  hook = String((await done(page, "system", "hooks.create", scripted("guard", "^list_dir$", { decision: "block", reason: "no" })))["hookId"]);
  await done(page, "system", "hooks.update", { hookId: hook, updates: { priority: 2 } });
  await done(page, "system", "hooks.create", { name: "no-secrets", event: "user_prompt_submit", handler_type: "script", scope: "tenant", config: { source: 'function handle(event) { return event.rawInput.includes("swordfish") ? { decision: "block", reason: "that is a secret" } : { decision: "allow" }; }' } });
  await done(page, "system", "chat.send", { message: "look around", agentId: "main", sessionKey: "agent:main:ws:direct:refused" });
  const { turns } = (await done(page, "system", "turns.list", {})) as { turns: { turnId: string }[] };
  refused = turns[0]?.turnId ?? "";
  await done(page, "system", "members.add", { userId: "carl", role: "operator" });
  await done(page, "system", "api_keys.create", { name: "nightly", owner: "carl", scopes: ["operator.read"] });
  await done(page, "system", "tenants.create", { slug: "acme", name: "Acme" });
  // Who is signed in twice may sign out everywhere.
  await signedIn(await rig.person(), gateway, "/settings", "system");
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

type Open = (page: Page, words: Words) => Promise<unknown>;

const inDialog = async (page: Page): Promise<void> => page.getByRole("dialog").waitFor();
/** Presses the button that is called `named`, which opens a dialog. */
const press =
  (named: (words: Words) => string): Open =>
  async (page, words) => {
    await page.getByRole("button", { name: named(words), exact: true }).first().click();
    await inDialog(page);
  };
const handler = (name: string) => async (page: Page) => {
  await page.locator(`input[type=radio][value=${name}]`).check();
  await page.locator("form textarea").first().waitFor();
};

/** What opens over a page or in it, once somebody does something: where, and how. */
const OPENS: readonly (readonly [string, () => string, Open])[] = [
  ["switch off", () => `/hooks/${hook}`, press(({ hooks }) => hooks.switchOff)],
  ["delete", () => `/hooks/${hook}`, press(({ hooks }) => hooks.delete)],
  ["restore", () => `/hooks/${hook}?tab=versions`, press(({ rules }) => rules.versions.restoreWhich(1))],
  [
    "write over what is there",
    () => "/hooks/import",
    async (page, { rules: { imports } }) => {
      await page.getByLabel(imports.text).fill(JSON.stringify([scripted("guard", "^list_dir$", { decision: "block", reason: "no" }, { priority: 999 })]));
      await page.getByLabel(imports.overwrite(1)).check();
      await page.getByRole("button", { name: imports.act(1) }).click();
      await inDialog(page);
    },
  ],
  [
    "edit conflict",
    () => `/hooks/${hook}?tab=edit`,
    async (page, { hooks }) => {
      saved += 1;
      await page.getByLabel(hooks.fields.priority).fill(String(saved));
      await done(page, "system", "hooks.update", { hookId: hook, updates: { timeout_ms: 1_000 + saved } });
      // Who it was comes a moment later.
      const [, said = ""] = hooks.changedMeanwhile(saved, "\0").split("\0");
      await page.getByText(said.trim()).waitFor();
      await page.getByRole("button", { name: hooks.save, exact: true }).click();
      await page.getByRole("dialog").getByRole("table").waitFor();
    },
  ],
  ["open as test", () => `/turns/${refused}`, press(({ turns }) => turns.openAsTest)],
  ["let through", () => `/turns/${refused}`, press(({ turns }) => turns.letThrough.action)],
  ["budget", () => "/health", press(({ rules }) => rules.budget.change)],
  [
    "menu behind the name",
    () => "/chain",
    async (page) => {
      await page.locator("nav button[aria-haspopup=menu]").click();
      await page.getByRole("menu").waitFor();
    },
  ],
  ["revoke a key", () => "/settings/keys", press(({ settings }) => settings.keys.revokeWhich("nightly"))],
  [
    "a role that becomes less",
    () => "/settings/members",
    async (page, { settings }) => {
      await page.getByLabel(settings.members.roleOf("carl")).selectOption("viewer");
      await inDialog(page);
    },
  ],
  ["shut a member out", () => "/settings/members", press(({ settings }) => settings.members.offWhich("carl"))],
  ["remove a member", () => "/settings/members", press(({ settings }) => settings.members.removeWhich("carl"))],
  ["close a tenant", () => "/settings/tenants", press(({ settings }) => settings.tenants.closeWhich("Acme"))],
  ["sign out here", () => "/settings/you", press(({ frame }) => frame.signOut)],
  ["sign out everywhere", () => "/settings/you", press(({ settings }) => settings.devices.endAll)],
  [
    "an event that happened",
    () => "/chain",
    async (page, { chain }) => {
      // Only the newest turns are offered: the event is one of them, whatever happened before.
      await done(page, "system", "chat.send", { message: "look around", agentId: "main", sessionKey: `agent:main:ws:direct:past-${crypto.randomUUID()}` });
      await page.getByRole("button", { name: chain.pastEvents.open }).click();
      await page.getByLabel(chain.pastEvents.label).locator("option", { hasText: "list_dir" }).first().waitFor({ state: "attached" });
    },
  ],
  ["form of a prompt", () => "/hooks/new", handler("prompt")],
  [
    "form of an HTTP hook, with a header and with mistakes",
    () => "/hooks/new",
    async (page, { hooks }) => {
      await page.locator("input[type=radio][value=http]").check();
      await page.getByRole("button", { name: hooks.addHeader }).click();
      await page.getByLabel(hooks.fields.url, { exact: true }).fill("");
      await page.getByLabel(hooks.fields.timeout).fill("99999");
      await page.getByRole("button", { name: hooks.createAction }).click();
      await page.locator("[aria-invalid=true]").nth(1).waitFor();
    },
  ],
  [
    "result of a test",
    () => `/hooks/${hook}`,
    async (page, { test: words }) => {
      await page.getByRole("button", { name: words.run }).click();
      await page.getByTestId("result").waitFor();
    },
  ],
  [
    "blocked message",
    () => "/chat/agent:main:ws:direct:blocked",
    async (page, { chat }) => {
      await page.getByLabel(chat.message, { exact: true }).fill("swordfish");
      await page.keyboard.press("Enter");
      await page.locator("[data-kind=blocked]").first().waitFor();
    },
  ],
];

/** Each width, scheme and language; with `PINTLE_LONG=1` each with each. */
const LOOKS: readonly (readonly ["light" | "dark", "en-US" | "zh-CN", number])[] =
  process.env["PINTLE_LONG"] === "1"
    ? (["light", "dark"] as const).flatMap((scheme) => (["en-US", "zh-CN"] as const).flatMap((locale) => [360, 768, 1280, 1920].map((width) => [scheme, locale, width] as const)))
    : [
        ["light", "en-US", 1280],
        ["dark", "zh-CN", 360],
        ["dark", "en-US", 768],
        ["light", "zh-CN", 1920],
      ];

test.each(LOOKS)("everything that opens, %s, %s, %i px", async (colorScheme, locale, width) => {
  const context = await rig.person({ colorScheme, locale, viewport: { width, height: 800 } });
  const page = await signedIn(context, gateway, "/chain", "system");
  const bad: Record<string, unknown[]> = {};
  for (const [name, path, open] of OPENS) {
    await go(page, path());
    await open(page, locale === "en-US" ? en : zh).catch((error: unknown) => Promise.reject(new Error(`${name}: ${String(error)}`)));
    bad[name] = await findings(page);
    await page.keyboard.press("Escape");
  }
  expect(Object.fromEntries(Object.entries(bad).filter(([, found]) => found.length > 0))).toEqual({});
  await context.close();
}, 120_000);

test("the form of a command, where commands are run", async () => {
  const lite = await Gateway.start({ replies: [] });
  for (const [colorScheme, width] of [["light", 1280], ["dark", 360]] as const) {
    const context = await rig.person({ colorScheme, viewport: { width, height: 800 } });
    const page = await signedIn(context, lite, "/hooks/new", "anna");
    await handler("command")(page);
    expect([width, await findings(page)]).toEqual([width, []]);
    await context.close();
  }
  await lite.close();
});
