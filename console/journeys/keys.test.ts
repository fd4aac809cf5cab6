import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { en } from "../src/words/en.ts";
import { done, go, parks } from "./people.ts";
import { DONE, Gateway, LISTS, type Reply, Rig, rule, say, scripted, signedIn } from "./rig.ts";
import { SHAKES } from "./worlds.ts";

let rig: Rig;
let gateway: Gateway;
let page: Page;
let hook: string;
let turn: string;
/** An approval that nobody answered. */
let waits: string;

const FREEZE = '[hooks.processes.freeze]\nenabled = true\ncommand = ["python3", "freeze.py"]\nintercept = ["before_tool"]\nmatcher = "^write_file$"\n';
const READS: Reply = { tool_calls: [{ name: "read_file", arguments: { path: "a.txt" } }] };

beforeAll(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({ replies: [LISTS, DONE, READS], agent: 'tools = ["list_dir", "read_file"]\nask = ["read_file"]\n', config: FREEZE, files: { "freeze.py": SHAKES }, env: { PINTLE_EDITION: "standard", PINTLE_ENCRYPTION_KEY: "ab".repeat(32) } });
  // Without a list of owners `system` is one: everything is offered.
  page = await signedIn(await rig.person(), gateway, "/chat", "system");
  hook = await rule(page, scripted("guard", "^list_dir$", { decision: "block", reason: "no" }), "system");
  await say(page, "look around");
  const { turns } = (await done(page, "system", "turns.list", {})) as { turns: { turnId: string }[] };
  turn = turns[0]?.turnId ?? "";
  waits = await parks(page, "system", "read", "waits");
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

/** Goes to a page with keys alone. */
async function find(name: string, heading: string): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: en.find.label }).waitFor();
  await page.keyboard.type(name);
  await page.getByRole("option").first().filter({ hasText: name }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: heading }).waitFor();
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

/** Everything that one can do something with, and that Tab does not come to or that does not show it. */
async function unreached(): Promise<string[]> {
  const all = await page.evaluate(() => {
    const wanted = [...document.querySelectorAll<HTMLElement>("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter(
      (one) => one.checkVisibility({ visibilityProperty: true }) && !one.hasAttribute("disabled") && one.closest("[aria-hidden=true], [inert]") === null && one.getAttribute("role") !== "tablist" && (one.tabIndex >= 0 || one.getAttribute("role") === "tab"),
    );
    // Of radio buttons and of tabs beside each other Tab comes to one; arrows go on from there.
    const groupOf = (one: HTMLElement): unknown => (one instanceof HTMLInputElement && one.type === "radio" ? one.name : one.getAttribute("role") === "tab" ? one.closest("[role=tablist]") : one);
    const groups = [...new Set(wanted.map(groupOf))];
    wanted.forEach((one) => one.setAttribute("data-tab", String(groups.indexOf(groupOf(one)))));
    (document.activeElement as HTMLElement | null)?.blur();
    return groups.length;
  });
  const hidden: string[] = [];
  const seen = new Set<number>();
  for (let at = 0; at < all * 2 + 10 && seen.size < all; at += 1) {
    await page.keyboard.press("Tab");
    const { number, name, shows } = await page.evaluate(() => {
      const focused = document.activeElement as HTMLElement;
      const style = getComputedStyle(focused);
      return {
        number: Number(focused.getAttribute("data-tab") ?? NaN),
        name: `${focused.tagName} ${focused.getAttribute("aria-label") ?? focused.innerText.slice(0, 40)}`,
        shows: focused === document.body || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2),
      };
    });
    if (!Number.isNaN(number)) {
      seen.add(number);
    }
    if (!shows) {
      hidden.push(`the focus is not seen: ${name}`);
    }
  }
  const missed = await page.evaluate((known) => [...document.querySelectorAll<HTMLElement>("[data-tab]")].filter((one) => !known.includes(Number(one.getAttribute("data-tab")))).map((one) => `not reached: ${one.tagName} ${one.getAttribute("aria-label") ?? one.innerText.slice(0, 40)}`), [...seen]);
  await page.evaluate(() => document.querySelectorAll("[data-tab]").forEach((one) => one.removeAttribute("data-tab")));
  return [...new Set([...hidden, ...missed])];
}

test.each([
  ["Overview", "Overview", () => page.getByTestId("tiles").waitFor()],
  ["Turns", "Turns", () => page.locator("[data-row]").first().waitFor()],
  ["Executions", "Executions", () => page.locator("[data-row]").first().waitFor()],
  ["Change log", "Change log", () => page.locator("[data-row]").first().waitFor()],
  ["Import", "Import", () => page.getByLabel("Or paste it here").waitFor()],
  ["Health", "Health", () => page.getByTestId("budget").waitFor()],
  ["Members", "Members", () => page.getByRole("button", { name: "Add a member" }).waitFor()],
  ["API keys", "API keys", () => page.getByRole("button", { name: "New API key" }).waitFor()],
  ["Tenants", "Tenants", () => page.locator("tr[data-name]").first().waitFor()],
  ["Webhooks", "Webhooks", () => page.getByTestId("answer").waitFor()],
  ["Hooks", "Hooks", () => page.locator("[data-row]").first().waitFor()],
  ["Chain", "Chain", () => page.locator(".cm-content").first().waitFor()],
  ["Approvals", "Approvals", () => page.getByLabel("Show answered calls, too").waitFor()],
  ["Chat", "Chat", () => page.locator("aside li").first().waitFor()],
] as const)("%s: Tab comes to everything, and the focus is seen", async (name, heading, ready) => {
  await find(name, heading);
  await ready();
  // What is drawn anew meanwhile is gone through again.
  await expect.poll(unreached).toEqual([]);
});

test.each([
  ["a conversation", (): string => "/chat/agent:main:ws:direct:waits", () => page.locator("main textarea").waitFor()],
  ["a turn", (): string => `/turns/${turn}`, () => page.getByTestId("detail").waitFor()],
  ["a hook", (): string => `/hooks/${hook}`, () => page.locator(".cm-content").first().waitFor()],
  ["its form", (): string => `/hooks/${hook}?tab=edit`, () => page.locator(".cm-content").nth(1).waitFor()],
  ["its versions", (): string => `/hooks/${hook}?tab=versions`, () => page.locator("ol li").first().waitFor()],
  ["an approval", (): string => `/approvals/${waits}`, () => page.getByRole("button", { name: "Approve once" }).waitFor()],
  ["a form with every field", (): string => "/hooks/new", () => page.locator(".cm-content").first().waitFor()],
] as const)("%s: Tab comes to everything, and the focus is seen", async (_name, path, ready) => {
  await go(page, path());
  await ready();
  // What is drawn anew meanwhile is gone through again.
  await expect.poll(unreached).toEqual([]);
});

test("a number of the overview leads to its list, and a row to its turn", async () => {
  await find("Overview", "Overview");
  const tile = page.getByTestId("tiles").getByRole("link", { name: /blocked/ });
  await tile.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Turns" }).waitFor();
  await page.locator("[data-row]").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByTestId("answer").getByText("was refused by").waitFor();
  // Whoever comes back is on the row again.
  await page.goBack();
  await expect.poll(() => page.locator("[data-row]:focus").count()).toBe(1);
});

test("everything is found by its name: a turn, a hook of the configuration, an action that is done at once", async () => {
  const found = async (text: string): Promise<string[]> => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: en.find.label }).fill(text);
    await page.getByRole("option").first().waitFor();
    return page.getByRole("option").allInnerTexts();
  };
  // A turn by what somebody said, and by its id.
  await expect.poll(() => found("look around")).toContainEqual(expect.stringMatching(/look around\s+turn/));
  await expect.poll(() => found(turn)).toEqual([expect.stringMatching(/look around\s+turn/)]);
  await page.keyboard.press("Enter");
  await page.getByTestId("answer").getByText("was refused by").waitFor();
  await expect.poll(() => found("freeze")).toEqual([expect.stringMatching(/freeze\s+hook/)]);
  await page.keyboard.press("Enter");
  await page.locator("[data-configured=freeze]").first().waitFor();
  await found("dark");
  await page.keyboard.press("Enter");
  await expect.poll(() => page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
  await found("system colours");
  await page.keyboard.press("Enter");
  await found("begin a conversation");
  await page.keyboard.press("Enter");
  await page.getByLabel("Message", { exact: true }).waitFor();
  await expect.poll(() => found("run doctor")).toHaveLength(1);
  // Of an id that nothing here has, it may be one of these.
  await expect.poll(() => found("0193a5b0-7000-7000-8000-00000000dead")).toEqual([expect.stringMatching(/\sturn$/), expect.stringMatching(/\sexecution$/), expect.stringMatching(/\sapproval$/)]);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("Esc closes the newest thing only: what is found over a dialog, then the dialog; a menu, and nothing below it", async () => {
  await find("Members", "Members");
  await page.getByRole("button", { name: "Add a member" }).click();
  const [below, above] = [page.getByRole("dialog", { name: "Add a member" }), page.getByRole("dialog", { name: "Find anything" })];
  await below.getByLabel("User").fill("half typed");
  await page.keyboard.press("Control+k");
  await above.getByRole("combobox").waitFor();
  expect(await above.evaluate((dialog) => dialog.contains(document.activeElement))).toBe(true);
  await page.keyboard.press("Escape");
  await above.waitFor({ state: "detached" });
  await expect.poll(() => below.getByLabel("User").inputValue()).toBe("half typed");
  await expect.poll(() => below.evaluate((dialog) => dialog.contains(document.activeElement))).toBe(true);
  await page.keyboard.press("Escape");
  await below.waitFor({ state: "detached" });
  await page.getByRole("heading", { level: 1, name: "Members" }).waitFor();
  await page.getByRole("button", { name: /^system/ }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menu").waitFor();
  await page.keyboard.press("Control+k");
  await above.waitFor();
  await page.keyboard.press("Escape");
  await above.waitFor({ state: "detached" });
  await page.keyboard.press("Escape");
  await page.getByRole("menu").waitFor({ state: "detached" });
  await page.getByRole("heading", { level: 1, name: "Members" }).waitFor();
});

test("a member is added and disabled with keys alone, and the focus comes back", async () => {
  await find("Members", "Members");
  const add = page.getByRole("button", { name: "Add a member" });
  await add.focus();
  // What is searched for has the focus as soon as it opens.
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: en.find.label }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await expect.poll(() => add.evaluate((one) => one === document.activeElement)).toBe(true);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  expect(await page.evaluate(() => document.querySelector("[role=dialog]")?.contains(document.activeElement))).toBe(true);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await expect.poll(() => add.evaluate((one) => one === document.activeElement)).toBe(true);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type("carla");
  await page.keyboard.press("Enter");
  await page.locator("tr[data-name=carla]").waitFor();
  await page.getByRole("button", { name: "Disable carla" }).focus();
  await page.keyboard.press("Enter");
  const asked = page.getByRole("dialog");
  await asked.waitFor();
  await asked.getByRole("textbox").focus();
  await page.keyboard.type("left the team");
  await asked.getByRole("button").last().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Enable carla" }).waitFor();
});
