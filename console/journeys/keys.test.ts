import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { DONE, Gateway, LISTS, Rig, rule, say, scripted, signedIn } from "./rig.ts";

let rig: Rig;
let gateway: Gateway;
let page: Page;

beforeAll(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({ replies: [LISTS, DONE], agent: 'tools = ["list_dir"]\n', env: { PINTLE_EDITION: "standard", PINTLE_ENCRYPTION_KEY: "ab".repeat(32) } });
  // Without a list of owners `system` is one: everything is offered.
  page = await signedIn(await rig.person(), gateway, "/chat", "system");
  await rule(page, scripted("guard", "^list_dir$", { decision: "block", reason: "no" }), "system");
  await say(page, "look around");
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

/** Goes to a page with keys alone. */
async function find(name: string, heading: string): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Page, hook, conversation or agent" }).waitFor();
  await page.keyboard.type(name);
  await page.getByRole("option").first().waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: heading }).waitFor();
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

/** Everything that one can do something with, and that Tab does not come to or that does not show it. */
async function unreached(): Promise<string[]> {
  const all = await page.evaluate(() => {
    const wanted = [...document.querySelectorAll<HTMLElement>("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter(
      (one) => one.checkVisibility({ visibilityProperty: true }) && !one.hasAttribute("disabled") && one.closest("[aria-hidden=true], [inert]") === null && one.tabIndex >= 0,
    );
    // Of radio buttons Tab comes to one.
    const several = wanted.filter((one, at) => !(one instanceof HTMLInputElement && one.type === "radio" && wanted.findIndex((other) => other instanceof HTMLInputElement && other.name === one.name) !== at));
    several.forEach((one, at) => one.setAttribute("data-tab", String(at)));
    (document.activeElement as HTMLElement | null)?.blur();
    return several.length;
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
] as const)("%s: Tab comes to everything, and the focus is seen", async (name, heading, ready) => {
  await find(name, heading);
  await ready();
  expect(await unreached()).toEqual([]);
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
});

test("a member is added and shut out with keys alone; Esc closes the newest thing only, and the focus comes back", async () => {
  await find("Members", "Members");
  const add = page.getByRole("button", { name: "Add a member" });
  await add.focus();
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
  await page.getByRole("button", { name: "Shut out carla" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.getByRole("dialog").getByRole("button").last().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Let in carla" }).waitFor();
});
