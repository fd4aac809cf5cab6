import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { en } from "../src/words/en.ts";
import { ask, done, findings, go, HOSTILE_NAME, outside } from "./people.ts";
import { DONE, Gateway, LISTS, Rig, scripted, signedIn, TOKEN } from "./rig.ts";

let rig: Rig;
let gateway: Gateway;

beforeAll(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({
    replies: [LISTS, DONE],
    env: { PINTLE_EDITION: "standard", PINTLE_ENCRYPTION_KEY: "ab".repeat(32), HOOKS_SECRET: `whsec_${Buffer.alloc(24, 1).toString("base64")}` },
    config: `[[gateway.webhooks]]\nurl = "https://chat.example.org/pintle"\nevents = ["approval.created"]\nsecret_env = "HOOKS_SECRET"\n`,
  });
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

const row = (page: Page, name: string) => page.locator(`tr[data-name="${name}"]`);

test("a key is shown once, copied, lets a program in, and is revoked", async () => {
  const context = await rig.person({ permissions: ["clipboard-read", "clipboard-write"] });
  const page = await signedIn(context, gateway, "/settings/keys", "anna");
  await page.getByText("There is no API key in use").waitFor();
  await page.getByRole("button", { name: "New API key" }).click();
  const dialog = page.getByRole("dialog", { name: "New API key" });
  await dialog.getByRole("button", { name: "Create key" }).click();
  await dialog.getByText("This field is required.").waitFor();
  await dialog.getByLabel("Name").fill("nightly build");
  await dialog.getByLabel("Owner").fill("ci");
  await dialog.getByText("the key makes them one, with the role that it needs").waitFor();
  await dialog.getByRole("button", { name: "Create key" }).click();
  const key = await page.getByLabel("The key").inputValue();
  expect(key).toMatch(/^pintle_[0-9a-f]{32}$/);
  await page.getByRole("button", { name: "Copy" }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(key);
  expect((await ask(page, "", "agents.list", {}, key)).ok).toBe(true);
  expect((await ask(page, "", "hooks.create", {}, key)).error?.code).toBe("UNAUTHORIZED");
  await page.getByRole("button", { name: "I have saved it" }).click();
  // It is nowhere any more: not in the page, not in what the browser keeps, not in what the server lists.
  expect(await page.content()).not.toContain(key);
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).not.toContain(key);
  await page.reload();
  await row(page, "nightly build").waitFor();
  expect(await page.content()).not.toContain(key);

  await row(page, "nightly build").getByRole("button", { name: "Revoke nightly build" }).click();
  const sure = page.getByRole("dialog");
  await expect.poll(() => sure.innerText()).toContain("are refused within a second");
  await expect.poll(() => sure.getByRole("button", { name: "Revoke" }).isDisabled()).toBe(true);
  await sure.getByLabel("Reason").fill("it was in a log");
  await sure.getByRole("button", { name: "Revoke" }).click();
  await page.getByText("There is no API key in use").waitFor();
  expect((await ask(page, "", "agents.list", {}, key)).error?.code).toBe("UNAUTHORIZED");
  await page.getByLabel("Show expired and revoked keys, too").check();
  await expect.poll(() => row(page, "nightly build").innerText()).toContain("revoked");
  await expect.poll(() => page.url()).toContain("all=yes");
  await context.close();
});

test("a key that is revoked while a page is open ends the page, which says why", async () => {
  const [admins, theirs, others] = [await rig.person(), await rig.person(), await rig.person()];
  const admin = await outside(admins, gateway);
  const { key, apiKey } = (await done(admin, "anna", "api_keys.create", { name: "theirs", owner: "bea", scopes: ["operator.write"] })) as { key: string; apiKey: { id: string } };
  const page = await outside(theirs, gateway);
  await page.locator("input[name=token]").fill(key);
  await page.locator("button[type=submit]").click();
  await page.locator("nav").first().waitFor();
  await go(page, "/settings");
  await expect.poll(() => page.getByTestId("answer").innerText()).toBe("You are bea, operator in Default.");
  // The same user by the token: what else ends a session would end this one, too.
  const byToken = await signedIn(others, gateway, "/settings", "bea");
  await expect.poll(() => byToken.getByTestId("answer").innerText()).toBe("You are bea, operator in Default.");
  await byToken.getByRole("button", { name: en.settings.devices.end, exact: true }).waitFor();
  await done(admin, "anna", "api_keys.revoke", { id: apiKey.id });
  await page.locator("input[name=token]").waitFor();
  await page.getByRole("status").getByText(en.signIn.takenAbout).waitFor();
  // It was the key, and nothing else: it lets nobody in any more, and the other session goes on alone.
  await page.locator("input[name=token]").fill(key);
  await page.locator("button[type=submit]").click();
  await page.getByRole("alert").getByText(en.problem.advice.CREDENTIALS).waitFor();
  await byToken.reload();
  await byToken.getByText(en.settings.devices.current, { exact: true }).waitFor();
  await byToken.getByRole("button", { name: en.settings.devices.end, exact: true }).waitFor({ state: "detached" });
  await expect.poll(() => byToken.getByTestId("answer").innerText()).toBe("You are bea, operator in Default.");
  await Promise.all([admins.close(), theirs.close(), others.close()]);
});

test("a member is added, made less, disabled, enabled and removed, and each says what ends", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/settings/members", "anna");
  await page.getByRole("button", { name: "Add a member" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("User").fill("carl");
  await dialog.getByLabel("Role").selectOption("operator");
  await dialog.getByRole("button", { name: "Add a member" }).click();
  await row(page, "carl").waitFor();
  expect((await ask(page, "carl", "hooks.create", {})).error?.message).toContain("requires admin role");
  await page.getByLabel("Role of carl").selectOption("viewer");
  const sure = page.getByRole("dialog");
  await expect.poll(() => sure.innerText()).toContain("Make carl viewer?");
  await sure.getByRole("button", { name: "Change the role" }).click();
  await sure.waitFor({ state: "detached" });
  expect((await ask(page, "carl", "chat.send", { message: "x" })).error?.message).toContain("requires operator role");
  await page.getByRole("button", { name: "Disable carl" }).click();
  await expect.poll(() => sure.innerText()).toContain("stop working within a second");
  await sure.getByLabel("Reason").fill("on leave");
  await sure.getByRole("button", { name: "Disable" }).click();
  await row(page, "carl").getByText("disabled", { exact: true }).waitFor();
  expect((await ask(page, "carl", "agents.list", {})).error?.code).toBe("TENANT_ACCESS_REVOKED");
  await page.getByRole("button", { name: "Enable carl" }).click();
  await row(page, "carl").getByText("active", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Remove carl" }).click();
  await expect.poll(() => sure.innerText()).toContain("API keys and sessions end with it");
  await sure.getByLabel("Reason").fill("he left");
  await sure.getByRole("button", { name: "Remove" }).click();
  await row(page, "carl").waitFor({ state: "detached" });
  await context.close();
});

test("an owner makes a tenant, goes there and back, sees every tenant's hooks, and closes it", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/settings/tenants", "system");
  await page.getByRole("button", { name: "New tenant" }).click();
  await page.getByLabel("Short name").fill("acme");
  await page.getByLabel("Name", { exact: true }).fill("Acme");
  await page.getByRole("button", { name: "Create tenant" }).click();
  await row(page, "acme").waitFor();
  const made = await ask(page, "system", "hooks.create", { name: "of-acme", event: "stop", handler_type: "script", scope: "tenant", config: { source: "function handle() { return { decision: 'allow' } }" } }, TOKEN, "acme");
  expect(made.ok).toBe(true);
  await row(page, "acme").getByRole("button", { name: "Go there: Acme" }).click();
  await page.getByText("owner · Acme").waitFor();
  await page.getByRole("link", { name: "Hooks", exact: true }).click();
  await page.getByRole("link", { name: "of-acme" }).waitFor();
  // Back by the menu.
  await page.getByRole("button", { name: /system/ }).click();
  await page.getByRole("menuitem", { name: "Default" }).click();
  await page.getByText("owner · Default").waitFor();
  await go(page, "/hooks");
  await page.getByRole("link", { name: "pii-redactor" }).first().waitFor();
  await expect.poll(() => page.getByRole("link", { name: "of-acme" }).count()).toBe(0);
  await page.getByLabel("Tenant").selectOption("all");
  // A hook of another tenant says whose it is, and leads back to all of them.
  await page.getByRole("link", { name: "of-acme" }).click();
  await page.getByText("It is a hook of the tenant Acme.").waitFor();
  await expect.poll(() => page.locator("main").getByRole("link", { name: "Hooks", exact: true }).getAttribute("href")).toContain("tenant=all");
  // What was changed and what hooks did is this tenant's, or every tenant's, each with its name.
  const listed = page.getByRole("list", { name: "Change log" });
  await go(page, "/hooks/changes");
  await listed.getByText("pii-redactor").first().waitFor();
  await expect.poll(() => listed.getByText("of-acme").count()).toBe(0);
  await page.getByLabel("Tenant").selectOption("all");
  await expect.poll(() => listed.locator("[data-row]", { hasText: "of-acme" }).innerText()).toContain("Acme");
  await go(page, "/executions?tenant=all");
  await expect.poll(() => page.getByLabel("Tenant").inputValue()).toBe("all");
  await page.getByLabel("Tenant").selectOption("");
  await expect.poll(() => page.url()).not.toContain("tenant");
  // Turns and approvals are, too: one of another tenant is looked at, and acted on there.
  expect((await ask(page, "system", "chat.send", { message: "look in acme" }, TOKEN, "acme")).ok).toBe(true);
  await go(page, "/turns");
  const turn = page.locator("[data-row]").filter({ hasText: "look in acme" });
  await page.getByLabel("Tenant").waitFor();
  // The own list is there, and it is not in it.
  await page.locator("[data-row]").or(page.getByText(en.turns.empty)).first().waitFor();
  expect(await turn.count()).toBe(0);
  await page.getByLabel("Tenant").selectOption("all");
  await expect.poll(() => turn.innerText()).toContain("Acme");
  // A conversation is chosen with whose it is.
  const conversations = page.getByLabel("Conversation", { exact: true });
  await conversations.selectOption((await conversations.locator("option", { hasText: "Acme" }).first().getAttribute("value")) ?? "");
  await expect.poll(() => page.url()).toContain("of=");
  await expect.poll(() => page.locator("[data-row]").count()).toBe(1);
  await turn.waitFor();
  await page.getByRole("link", { name: "Hooks", exact: true }).click();
  await page.getByRole("link", { name: "pii-redactor" }).first().waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: en.find.label }).fill("look in acme");
  const found = page.getByRole("option").filter({ hasText: en.find.turn }).filter({ hasText: "Acme" });
  await found.first().waitFor();
  await found.first().click();
  await page.getByTestId("elsewhere").getByText("This belongs to the tenant Acme.").waitFor();
  await expect.poll(() => page.getByRole("link", { name: "Open the conversation" }).count()).toBe(0);
  await expect.poll(() => page.locator("main").getByRole("link", { name: "Turns", exact: true }).getAttribute("href")).toContain("tenant=all");
  expect(await findings(page)).toEqual([]);
  // What would run now is asked there, whatever address somebody has.
  await go(page, `/chain?turn=${new URL(page.url()).pathname.split("/").pop() ?? ""}&row=any`);
  await page.getByRole("heading", { name: "Chain" }).waitFor();
  await page.getByTestId("elsewhere").waitFor();
  // So it is with an execution, whose conversation opens there.
  let execution: string | undefined;
  await expect
    .poll(async () => {
      const { executions } = (await done(page, "system", "hooks.history", { limit: 200 })) as { executions: { id: string; hook_name: string }[] };
      execution = executions.find(({ hook_name: name }) => name === "of-acme")?.id;
      return execution;
    })
    .toBeDefined();
  await go(page, `/executions/${execution ?? ""}`);
  await page.getByTestId("elsewhere").getByText("This belongs to the tenant Acme.").waitFor();
  await expect.poll(() => page.locator("main dl a[href^='/chat/']").count()).toBe(0);
  await expect.poll(() => page.locator("main").getByRole("link", { name: "Executions", exact: true }).getAttribute("href")).toContain("tenant=all");
  for (const [path, ready] of [["/?tenant=all", page.getByTestId("tiles")], ["/approvals?tenant=all", page.getByRole("heading", { name: "Approvals" })]] as const) {
    await go(page, path);
    await ready.waitFor();
    await expect.poll(() => page.getByLabel("Tenant").inputValue()).toBe("all");
  }
  // Another list is no news: all of it is there at once, and nothing of it stays.
  await done(page, "system", "hooks.create", scripted("of-default", "^nothing$", { decision: "allow" }));
  await go(page, "/");
  const changed = page.locator("section").filter({ has: page.getByRole("heading", { name: "Recent changes" }) });
  await changed.getByText("of-default").first().waitFor();
  await expect.poll(() => changed.getByText("of-acme").count()).toBe(0);
  await page.getByLabel("Tenant").selectOption("all");
  await changed.getByText("of-acme").first().waitFor();
  await page.getByLabel("Tenant").selectOption("");
  await expect.poll(() => changed.getByText("of-acme").count()).toBe(0);
  await page.getByLabel("Tenant").selectOption("all");
  await page.getByTestId("tiles").getByRole("link", { name: /armed/ }).click();
  await page.getByRole("heading", { name: "Hooks" }).waitFor();
  await expect.poll(() => page.getByLabel("Tenant").inputValue()).toBe("all");
  await go(page, "/settings/tenants");
  await page.getByRole("button", { name: "Close Acme" }).click();
  const sure = page.getByRole("dialog");
  await expect.poll(() => sure.innerText()).toContain("Nothing of it is deleted");
  await sure.getByLabel("Reason").fill("the contract ended");
  await sure.getByRole("button", { name: "Close" }).click();
  await row(page, "acme").getByText("closed").waitFor();
  expect((await ask(page, "system", "agents.list", {}, TOKEN, "acme")).error?.code).toBe("TENANT_ACCESS_REVOKED");
  await expect.poll(() => row(page, "default").getByRole("button", { name: /Close/ }).count()).toBe(0);
  await context.close();
});

test("somebody sees their devices and signs out one, and all", async () => {
  const [one, two] = [await rig.person(), await rig.person()];
  const here = await signedIn(one, gateway, "/settings", "dora");
  const there = await signedIn(two, gateway, "/settings", "dora");
  await here.reload();
  await here.getByRole("button", { name: "Sign out there" }).click();
  await there.locator("input[name=token]").waitFor();
  await here.getByRole("button", { name: "Sign out there" }).waitFor({ state: "detached" });
  const again = await signedIn(await rig.person(), gateway, "/settings", "dora");
  await again.getByRole("button", { name: "Sign out everywhere" }).click();
  const sure = again.getByRole("dialog");
  await expect.poll(() => sure.innerText()).toContain("Both sessions end");
  await sure.getByRole("button", { name: "Sign out everywhere" }).click();
  await again.locator("input[name=token]").waitFor();
  // Nothing was wrong: it is told, and not as an error.
  await again.getByRole("status").getByText("You were signed out").waitFor();
  expect(await again.getByRole("alert").count()).toBe(0);
  await here.locator("input[name=token]").waitFor();
  await Promise.all([one.close(), two.close()]);
});

test("health shows the parts, and doctor proves the guards when an owner asks", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/health", "system");
  await page.getByRole("table", { name: "Parts" }).getByText("sqlite").waitFor();
  await page.getByRole("button", { name: "Run doctor" }).click();
  await page.getByTestId("doctor").locator("li").first().waitFor({ timeout: 90_000 });
  await expect.poll(() => findings(page)).toEqual([]);
  await context.close();
}, 120_000);

test("webhooks are listed with what waits, and the edition says what follows", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/settings/webhooks", "system");
  await page.getByText("https://chat.example.org/pintle").waitFor();
  await page.getByText("1 receiver has got everything").waitFor();
  await page.getByRole("link", { name: "Edition" }).click();
  await page.getByText("This is edition standard").waitFor();
  await context.close();
});

test("hostile names are shown as they are, and nothing runs or overflows", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/settings/keys", "anna");
  await done(page, "anna", "api_keys.create", { name: HOSTILE_NAME, owner: HOSTILE_NAME, scopes: ["operator.read"] });
  for (const width of [360, 768, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    for (const part of ["keys", "members"]) {
      await go(page, `/settings/${part}`);
      await page.reload();
      await page.getByText("{{7*7}}").first().waitFor();
      expect([width, part, await findings(page)]).toEqual([width, part, []]);
    }
  }
  expect(await page.evaluate(() => (window as unknown as { __ran?: number }).__ran)).toBeUndefined();
  await context.close();
});

const LOOKS = [
  ["light", "en-US", 1280],
  ["dark", "zh-CN", 1920],
  ["dark", "en-US", 768],
  ["light", "zh-CN", 360],
] as const;

test.each(LOOKS)("every part of the settings, %s, %s, %i px", async (colorScheme, locale, width) => {
  const context = await rig.person({ colorScheme, locale, viewport: { width, height: 800 } });
  const page = await signedIn(context, gateway, "/settings", "system");
  const bad: Record<string, unknown[]> = {};
  for (const part of ["you", "members", "keys", "tenants", "webhooks", "edition"]) {
    await go(page, `/settings/${part}`);
    await page.locator(`a[aria-current=page][href$="/${part}"]`).waitFor();
    await page.locator("main h1").waitFor();
    bad[part] = await findings(page);
    const opens = page.locator("main header button");
    if ((await opens.count()) > 0) {
      await opens.first().click();
      await page.getByRole("dialog").waitFor();
      bad[`${part}, dialog`] = await findings(page);
      await page.keyboard.press("Escape");
    }
  }
  expect(Object.fromEntries(Object.entries(bad).filter(([, found]) => found.length > 0))).toEqual({});
  await context.close();
});

test("what was typed in a dialog or in an import is there again after the session ended and the same person signed in anew", async () => {
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/settings/members", "system");
  await page.getByRole("button", { name: en.settings.members.add, exact: true }).click();
  const user = page.getByRole("dialog").getByLabel(en.settings.members.user);
  // Nothing that is pasted is cut off: it says that it is too long.
  await user.fill("n".repeat(300));
  await page.getByRole("dialog").getByText("At most 255 characters: this has 300.").waitFor();
  expect(await page.getByRole("dialog").locator("button[type=submit]").isDisabled()).toBe(true);
  await user.fill("half-typed");
  await page.keyboard.press("Escape");
  await go(page, "/hooks/import");
  await page.getByLabel(en.rules.imports.text).fill('[{"name":"half done"}]');
  const other = await rig.person();
  const there = await signedIn(other, gateway, "/settings", "system");
  await there.getByRole("button", { name: en.settings.devices.endAll }).click();
  await there.getByRole("dialog").locator("button[type=submit]").click();
  await page.getByText(en.signIn.drafts).waitFor();
  await page.locator("input[name=token]").fill(TOKEN);
  await page.locator("input[name=user]").fill("system");
  await page.locator("button[type=submit]").click();
  await expect.poll(() => page.getByLabel(en.rules.imports.text).inputValue()).toBe('[{"name":"half done"}]');
  await go(page, "/settings/members");
  await page.getByRole("button", { name: en.settings.members.add, exact: true }).click();
  await expect.poll(() => user.inputValue()).toBe("half-typed");
  // None of it was kept anywhere but in the page.
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).not.toMatch(/half/);
  await Promise.all([context.close(), other.close()]);
});
