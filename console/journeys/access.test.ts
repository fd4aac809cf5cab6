import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { editor, findings, go } from "./people.ts";
import { DONE, Gateway, LISTS, Rig, signedIn } from "./rig.ts";

let rig: Rig;
let gateway: Gateway;
let conversation: string;
let hook: string;

beforeAll(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({ replies: [LISTS, DONE], agent: "ask = ['list_dir']\n" });
  const page = await signedIn(await rig.person(), gateway, "/hooks/new", "anna");
  await page.getByLabel("Name", { exact: true }).fill("watched");
  await page.getByLabel("Matcher").fill("^list_dir$");
  await page.getByRole("radio", { name: "script" }).check();
  await editor(page, "Script").waitFor();
  await page.getByRole("button", { name: "Create hook" }).click();
  await page.getByRole("tab", { name: "Edit" }).waitFor();
  hook = new URL(page.url()).pathname;
  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await page.getByRole("button", { name: "New" }).click();
  conversation = new URL(page.url()).pathname;
  await page.getByLabel("Message").fill("look around");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("button", { name: "Approve once" }).waitFor();
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

const OPENS: readonly (readonly [string, () => string, (page: Page) => Promise<void>])[] = [
  ["overview", () => "/", async (page) => page.getByTestId("tiles").waitFor()],
  [
    "overview as a table",
    () => "/",
    async (page) => {
      await page.locator("details summary").first().click();
      await page.locator("details table").waitFor();
    },
  ],
  ["turns", () => "/turns", async (page) => page.locator("[data-row]").first().waitFor()],
  [
    "turn",
    () => "/turns",
    async (page) => {
      await page.locator("[data-row]").first().click();
      await page.getByTestId("detail").waitFor();
    },
  ],
  ["no turn", () => "/turns/0193a5b0-7000-7000-8000-00000000dead", async (page) => page.locator("main a[href='/turns']").waitFor()],
  ["chat", () => "/chat", async (page) => page.locator("aside li").first().waitFor()],
  ["conversation", () => conversation, async (page) => page.locator("[data-kind=call], [data-kind=approval]").first().waitFor()],
  ["approvals", () => "/approvals", async (page) => page.locator("[data-row]").first().waitFor()],
  [
    "approval",
    () => "/approvals",
    async (page) => {
      await page.locator("[data-row]").first().click();
      await page.getByTestId("call").waitFor();
    },
  ],
  ["hooks", () => "/hooks", async (page) => page.locator("[data-row]").nth(2).waitFor()],
  [
    "change log",
    () => "/hooks/changes",
    async (page) => page.locator("[data-row]").first().waitFor(),
  ],
  [
    "import",
    () => "/hooks/import",
    async (page) => {
      await page.locator("textarea").fill(JSON.stringify([7, { name: "new", event: "stop", handler_type: "script", scope: "tenant", config: { source: "function handle() {}" } }, { name: "watched", event: "pre_tool_use", handler_type: "script", scope: "tenant", config: {} }]));
      await page.locator("table tbody tr").nth(2).waitFor();
      await page.locator("table button, [data-testid=trial]").first().waitFor();
    },
  ],
  [
    "versions",
    () => `${hook}?tab=versions`,
    async (page) => page.locator("ol li").first().waitFor(),
  ],
  ["new hook", () => "/hooks/new", async (page) => page.locator(".cm-content").first().waitFor()],
  [
    "new hook with a wrong condition",
    () => "/hooks/new",
    async (page) => {
      await page.locator("form .cm-content").click();
      await page.keyboard.insertText("tool_nam == 1");
      await page.locator(".cm-wrong").waitFor();
      await page.locator("form [aria-invalid=true]").waitFor();
    },
  ],
  ["hook", () => hook, async (page) => page.locator(".cm-content").first().waitFor()],
  ["edit", () => `${hook}?tab=edit`, async (page) => page.locator(".cm-content").nth(1).waitFor()],
  ["history", () => `${hook}?tab=history`, async (page) => page.locator("[data-row]").first().waitFor()],
  [
    "switch off",
    () => hook,
    async (page) => {
      await page.locator("header button").first().click();
      await page.getByRole("dialog").waitFor();
    },
  ],
  ["executions", () => "/executions", async (page) => page.locator("[data-row]").first().waitFor()],
  [
    "execution",
    () => "/executions",
    async (page) => {
      await page.locator("[data-row]").first().click();
      await page.locator("dl").waitFor();
    },
  ],
  ["chain", () => "/chain", async (page) => page.locator(".cm-content").first().waitFor()],
  ["asked chain", () => "/chain?moment=call&tool=exec&input=%7B%7D", async (page) => page.locator("main ol li").first().waitFor()],
  [
    "model call",
    () => "/turns",
    async (page) => {
      await page.locator("[data-row]").first().click();
      await page.getByRole("treeitem").filter({ hasText: "scripted/test" }).first().click();
      await page.getByTestId("seen").waitFor();
    },
  ],
  [
    "files beside a message",
    () => "/chat/agent:main:ws:direct:another",
    async (page) => {
      await page.locator("input[type=file]").setInputFiles([
        { name: "notes.md", mimeType: "text/markdown", buffer: Buffer.from("# notes\n") },
        { name: "page.html", mimeType: "text/html", buffer: Buffer.from("<p>") },
      ]);
      await page.getByRole("alert").waitFor();
      await page.locator("[data-attached=kept]").waitFor();
    },
  ],
  ["health", () => "/health", async (page) => page.getByTestId("budget").waitFor()],
  [
    "find",
    () => "/chain",
    async (page) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("option").first().waitFor();
    },
  ],
  [
    "keys",
    () => "/chain",
    async (page) => {
      await page.getByTestId("answer").click();
      await page.keyboard.press("?");
      await page.getByRole("dialog").waitFor();
    },
  ],
];

/** Each width, scheme and language; with `PINTLE_LONG=1` each with each. */
const LOOKS: readonly (readonly ["light" | "dark", "en-US" | "zh-CN", number])[] =
  process.env["PINTLE_LONG"] === "1"
    ? (["light", "dark"] as const).flatMap((scheme) => (["en-US", "zh-CN"] as const).flatMap((locale) => [360, 768, 1280, 1920].map((width) => [scheme, locale, width] as const)))
    : [
        ["light", "en-US", 1280],
        ["dark", "zh-CN", 1280],
        ["light", "zh-CN", 360],
        ["dark", "en-US", 360],
        ["dark", "en-US", 768],
        ["light", "en-US", 1920],
      ];

// Dialogs, menus, forms of each handler and what comes of a deed are in dialogs.test.ts.
test.each(LOOKS)("every page, %s, %s, %i px", async (colorScheme, locale, width) => {
  const context = await rig.person({ colorScheme, locale, viewport: { width, height: 800 } });
  const fresh = await context.newPage();
  await fresh.goto(gateway.url);
  await fresh.locator("input[name=token]").waitFor();
  const bad: Record<string, unknown[]> = { "sign-in": await findings(fresh) };
  const page = await signedIn(context, gateway, "/chain", "anna");
  for (const [name, path, ready] of OPENS) {
    await go(page, path());
    await ready(page);
    bad[name] = await findings(page);
    await page.keyboard.press("Escape");
  }
  expect(Object.fromEntries(Object.entries(bad).filter(([, found]) => found.length > 0))).toEqual({});
  expect(await page.evaluate(() => document.documentElement.lang)).toBe(locale === "en-US" ? "en" : locale);
  await context.close();
}, 120_000);
