import type { Page } from "playwright-core";
import { expect, test, afterEach, beforeEach } from "vitest";

import { zh } from "../src/words/zh.ts";
import { DONE, Gateway, LISTS, type Reply, Rig, rule, scripted, type Setting, signedIn, TOKEN } from "./rig.ts";
import { editor, findings, go, write } from "./people.ts";

let rig: Rig;
let gateway: Gateway;

beforeEach(async () => {
  rig = await Rig.start();
});
afterEach(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});
const serve = async (setting: Setting, token = true): Promise<void> => {
  gateway = await Gateway.start(setting, token);
};

test("an approval that is answered in one browser releases the turn in another", async () => {
  await serve({ replies: [LISTS, DONE], agent: "ask = ['list_dir']\n" });
  const [desk, phone] = [await rig.person(), await rig.person({ viewport: { width: 360, height: 740 } })];
  const anna = await signedIn(desk, gateway, "/chat", "anna");
  const ben = await signedIn(phone, gateway, "/approvals", "ben");
  await ben.getByText("Nothing waits for you.").waitFor();
  await anna.getByRole("button", { name: "New" }).click();
  await anna.getByLabel("Message").fill("look around");
  await anna.getByRole("button", { name: "Send" }).click();
  await anna.locator("[data-kind=approval]").getByText("waits for a person", { exact: true }).waitFor();
  // It comes by itself, says until when it waits, and exactly what would run.
  await expect.poll(() => ben.getByRole("link", { name: /list_dir/ }).innerText()).toContain("expires in");
  await ben.getByRole("link", { name: /list_dir/ }).click();
  await ben.getByRole("heading", { name: /list_dir waits for an answer/ }).waitFor();
  await expect.poll(() => ben.getByTestId("call").innerText()).toContain('"path": "."');
  expect(await ben.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
  await ben.getByLabel("Reason").fill("only this once");
  await ben.getByRole("button", { name: "Approve once" }).click();
  await ben.getByText("by ben").waitFor();
  await anna.getByText("All done.").waitFor();
  await anna.getByRole("button", { name: "Send" }).waitFor();
});

test("of two people who answer the same call, the second is told who was first, and the call runs once", async () => {
  await serve({ replies: [LISTS, DONE], agent: "ask = ['list_dir']\n" });
  const [desk, slow] = [await rig.person(), await rig.person()];
  // From a moment on Carl's page hears of nothing but what it asks for: it still offers what Ben answered already.
  let isSlow = false;
  await slow.routeWebSocket(/\/ws$/, (page) => {
    page.connectToServer().onMessage((message) => {
      if (!isSlow || !String(message).startsWith('{"type":"event"')) {
        page.send(message);
      }
    });
  });
  const ben = await signedIn(desk, gateway, "/chat", "ben");
  await ben.getByRole("button", { name: "New" }).click();
  await ben.getByLabel("Message").fill("look around");
  await ben.getByRole("button", { name: "Send" }).click();
  await ben.getByRole("button", { name: "Approve once" }).waitFor();
  const carl = await signedIn(slow, gateway, "/approvals", "carl");
  await carl.getByRole("link", { name: /list_dir/ }).click();
  await carl.getByRole("button", { name: "Refuse" }).waitFor();
  isSlow = true;
  await ben.getByRole("button", { name: "Approve once" }).click();
  await ben.getByText("All done.").waitFor();
  await carl.getByRole("button", { name: "Refuse" }).click();
  await carl.getByRole("heading", { name: /was approved/ }).waitFor();
  await carl.getByText("by ben", { exact: true }).waitFor();
  await expect.poll(() => carl.getByRole("button", { name: "Refuse" }).count()).toBe(0);
  await expect.poll(() => ben.locator("[data-kind=call]").allInnerTexts()).toEqual([expect.stringMatching(/ran\s+list_dir/)]);
});

test("an approval whose call changed is asked about again, with what it was before", async () => {
  await serve({ replies: [LISTS, DONE], agent: "ask = ['list_dir']\n" });
  const page = await signedIn(await rig.person(), gateway, "/chat", "anna");
  await page.getByRole("button", { name: "New" }).click();
  await page.getByLabel("Message").fill("look around");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("button", { name: "Approve once" }).waitFor();
  // Meanwhile a rule comes that looks elsewhere.
  await rule(page, scripted("elsewhere", "^list_dir$", { decision: "allow", updatedInput: { toolInput: { path: "./sub" } } }, { may_rewrite: true }));
  await page.getByRole("button", { name: "Approve once" }).click();
  // The list is opened once the new question stands: what comes to it later waits until it is asked for.
  await page.locator("[data-kind=approval]").filter({ hasText: "./sub" }).waitFor();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Approvals" }).click();
  await page.locator("[data-row]").filter({ hasText: "./sub" }).click();
  await page.getByRole("heading", { name: "What it was before" }).waitFor();
  const diff = page.getByRole("table", { name: "What it was before" });
  await expect.poll(() => diff.innerText()).toMatch(/"path": "\."[^]*"path": "\.\/sub"/);
  await page.getByRole("button", { name: "Refuse" }).click();
  await page.getByText("by anna", { exact: true }).waitFor();
});

test("what is done in Chinese is done the same: a rule, what it blocks, and who lets it pass", async () => {
  await serve({ replies: [LISTS, DONE, LISTS, DONE], agent: "ask = ['read_file']\n" });
  const page = await signedIn(await rig.person({ locale: "zh-CN" }), gateway, "/hooks", "anna");
  await page.getByRole("link", { name: zh.hooks.create }).click();
  await page.getByLabel(zh.hooks.fields.name, { exact: true }).fill("护栏");
  await page.getByLabel(zh.hooks.fields.matcher, { exact: true }).fill("^list_dir$");
  await page.locator("input[type=radio][value=script]").check();
  await write(page, zh.hooks.fields.source, 'function handle() { return { decision: "block", reason: "不许查看" }; }');
  await page.getByRole("button", { name: zh.hooks.createAction }).click();
  await page.getByRole("heading", { name: /护栏/ }).waitFor();
  await page.getByRole("link", { name: zh.pages.chat, exact: true }).click();
  await page.getByRole("button", { name: zh.chat.begin }).click();
  await page.getByLabel(zh.chat.message, { exact: true }).fill("看看");
  await page.getByRole("button", { name: zh.chat.send, exact: true }).click();
  const call = page.locator("[data-kind=call]").first();
  await expect.poll(() => call.innerText()).toContain("不许查看");
  await expect.poll(() => call.innerText()).toContain(zh.chat.blocked);
  await call.getByRole("link", { name: "护栏" }).click();
  await page.getByRole("button", { name: zh.hooks.switchOff }).click();
  const dialog = page.getByRole("dialog", { name: zh.hooks.offTitle("护栏") });
  await dialog.getByLabel(zh.hooks.reason).fill("挡得太多");
  await dialog.getByRole("button", { name: zh.hooks.switchOff }).click();
  await page.getByText(zh.hooks.offBecause("挡得太多")).waitFor();
  await page.getByRole("link", { name: zh.pages.chat, exact: true }).click();
  await page.getByRole("button", { name: zh.chat.begin }).click();
  await page.getByLabel(zh.chat.message, { exact: true }).fill("再看看");
  await page.getByRole("button", { name: zh.chat.send, exact: true }).click();
  await expect.poll(() => page.locator("[data-kind=call]").first().innerText()).toContain(zh.chat.ran);
});

test("a message that a gate stops says which one and why, and nothing of it stays", async () => {
  await serve({ replies: [DONE] });
  const context = await rig.person();
  const page = await signedIn(context, gateway, "/hooks/new", "anna");
  await page.getByLabel("Name", { exact: true }).fill("no-secrets");
  await page.getByLabel("Event", { exact: true }).selectOption("user_prompt_submit");
  await page.getByRole("radio", { name: "script" }).check();
  await editor(page, "Script").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.type('function handle(event) { return event.rawInput.includes("swordfish") ? { decision: "block", reason: "that is a secret" } : { decision: "allow" }; }');
  await page.getByRole("button", { name: "Create hook" }).click();
  await page.getByRole("heading", { name: /no-secrets/ }).waitFor();
  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await page.getByRole("button", { name: "New" }).click();
  await page.getByLabel("Message").fill("the password is swordfish");
  await page.keyboard.press("Enter");
  await page.locator("[data-kind=blocked]").waitFor();
  await expect.poll(() => page.locator("[data-kind=blocked]").innerText()).toContain("no-secrets: that is a secret");
  await expect.poll(() => page.getByLabel("Message").inputValue()).toBe("");
  const kept = await page.evaluate(() => document.body.innerText + JSON.stringify({ ...localStorage, ...sessionStorage }) + location.href);
  expect(kept).not.toContain("swordfish");
});

test("an answer streams, is steered, and is stopped", async () => {
  // Longer than it takes to stop it, however busy the machine is.
  const slow: Reply = { text: ["one ", "two ", ...Array.from({ length: 60 }, () => "more ")], delay_ms: 700 };
  await serve({ replies: [slow, DONE] });
  const page = await signedIn(await rig.person(), gateway, "/chat", "anna");
  await page.getByRole("button", { name: "New" }).click();
  await page.getByLabel("Message").fill("count");
  await page.keyboard.press("Enter");
  await page.locator("[data-kind=answer]").getByText("one two").waitFor();
  await page.getByLabel("Say something while the agent works").fill("faster");
  await page.getByRole("button", { name: "Steer" }).click();
  await page.getByText("Handed over while it works").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
});

test("hostile texts run nothing and overflow nothing", async () => {
  const hostile = `<img src=x onerror="window.hit=1"><script>window.hit=1</script> [link](javascript:window.hit=1) ![p](https://evil.example/p.png) ${"w".repeat(3000)}`;
  await serve({ replies: [{ tool_calls: [{ name: "list_dir", arguments: { path: hostile } }] }, { text: hostile }] });
  const context = await rig.person({ viewport: { width: 360, height: 740 } });
  const asked: string[] = [];
  context.on("request", (request) => asked.push(new URL(request.url()).host));
  const page = await signedIn(context, gateway, "/hooks/new", "anna");
  await page.getByLabel("Name", { exact: true }).fill(hostile.slice(0, 250));
  await page.getByLabel("Matcher").fill("^list_dir$");
  await page.getByRole("radio", { name: "script" }).check();
  await write(page, "Script", `function handle() { return { decision: "block", reason: ${JSON.stringify(hostile.slice(0, 1500))} }; }`);
  await page.getByRole("button", { name: "Create hook" }).click();
  await page.getByRole("tab", { name: "Overview" }).waitFor();
  const fits = async (): Promise<void> => {
    expect(await page.evaluate(() => [document.documentElement.scrollWidth <= innerWidth, (window as { hit?: number }).hit ?? 0])).toEqual([true, 0]);
  };
  await fits();
  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await page.getByRole("button", { name: "New" }).click();
  await page.getByLabel("Message").fill(hostile);
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("[data-kind=answer]").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  await fits();
  await expect.poll(() => page.locator("[data-kind=answer] a, [data-kind=answer] img").count()).toBe(0);
  for (const path of ["/hooks", "/executions"]) {
    await go(page, path);
    await page.locator("[data-row]").first().waitFor();
    await fits();
  }
  expect(new Set(asked)).toEqual(new Set([new URL(gateway.url).host]));
});

test("on one's own machine nobody signs in, and what they may not do is not offered", async () => {
  await serve({ replies: [DONE] }, false);
  const page = await (await rig.person()).newPage();
  await page.goto(`${gateway.url}/hooks`);
  await page.getByText("pii-redactor").first().waitFor();
  await expect.poll(() => page.getByRole("link", { name: "New hook" }).count()).toBe(0);
  await page.goto(`${gateway.url}/hooks/new`);
  await page.getByText("You cannot create hooks").waitFor();
  await page.getByText("pii-redactor").first().waitFor({ state: "detached" });
});

test("a wrong token is refused, and the address stays the one that was opened", async () => {
  await serve({ replies: [DONE] });
  const page = await (await rig.person()).newPage();
  await page.goto(`${gateway.url}/executions?decision=block`);
  await page.getByLabel("Gateway token or API key").fill("wrong");
  // Under which name one acts is known of a key alone.
  await expect.poll(() => page.getByRole("button", { name: "Sign in" }).isDisabled()).toBe(true);
  await page.getByLabel("Your name").fill("anna");
  await page.getByRole("button", { name: "Sign in" }).click();
  // What was refused can be found in the log of the server by its name.
  await page.getByRole("alert").getByText(/Request [0-9a-f-]{8,}/).waitFor();
  await page.getByRole("alert").getByText(/^Check the token or key/).waitFor();
  await page.getByLabel("Gateway token or API key").fill(TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Executions" }).waitFor();
  await expect.poll(() => page.getByLabel("Decision").inputValue()).toBe("block");
  await page.goto(`${gateway.url}/hooks/0193a5b0-7000-7000-8000-00000000dead`);
  await page.getByText("There is no such hook").waitFor();
});

test("a session stays over a reload, and signing out ends it", async () => {
  await serve({ replies: [DONE] });
  const page = await signedIn(await rig.person(), gateway, "/hooks", "anna");
  await page.reload();
  await page.getByText("pii-redactor").first().waitFor();
  expect(await page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage }))).not.toContain(TOKEN);
  await page.getByRole("button", { name: /anna/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByLabel("Gateway token or API key").waitFor();
  await page.reload();
  await page.getByLabel("Gateway token or API key").waitFor();
});

/** Holds back what shows the pages, until it is let come. */
async function heldBack(page: Page): Promise<() => void> {
  let come = (): void => undefined;
  const held = new Promise<void>((done) => {
    come = done;
  });
  await page.route(/\/assets\/main-[^/]*\.js$/, async (route) => {
    await held;
    await route.fallback();
  });
  return come;
}

/** What axe misses before the pages are there: it comes with them. */
const COMES = ["landmark-one-main", "page-has-heading-one"];

test.each([
  ["light", "en-US", 1280],
  ["dark", "zh-CN", 360],
] as const)("the list of pages that is there first is for everybody, %s, %s, %i px", async (colorScheme, locale, width) => {
  await serve({ replies: [DONE] });
  const page = await signedIn(await rig.person({ colorScheme, locale, viewport: { width, height: 800 } }), gateway, "/hooks", "anna");
  await page.getByText("pii-redactor").first().waitFor();
  const come = await heldBack(page);
  await page.reload({ waitUntil: "commit" });
  await page.locator("#first-look a").first().waitFor();
  const found = (await findings(page)) as { readonly id?: string }[];
  expect(found.filter(({ id = "" }) => !COMES.includes(id))).toEqual([]);
  come();
  await page.getByTestId("role").waitFor();
});

test("the list of pages is there before the pages are, and a link that is followed by then leads where it says", async () => {
  await serve({ replies: [DONE] });
  const page = await signedIn(await rig.person(), gateway, "/hooks", "anna");
  await page.getByText("pii-redactor").first().waitFor();
  const come = await heldBack(page);
  await page.reload({ waitUntil: "commit" });
  const first = page.locator("#first-look");
  await first.getByRole("link", { name: "Turns", exact: true }).click();
  const chosen = first.locator('a[aria-current="page"]');
  await chosen.getByText("Turns").waitFor();
  await page.evaluate(() => history.back());
  await chosen.getByText("Hooks").waitFor();
  await page.evaluate(() => history.forward());
  await chosen.getByText("Turns").waitFor();
  expect(await page.getByTestId("role").count()).toBe(0);
  come();
  await page.getByRole("heading", { name: "Turns" }).waitFor();
  await first.waitFor({ state: "detached" });
  // Whoever signs out leaves none of it.
  await page.getByRole("button", { name: /anna/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.locator("input[name=token]").waitFor();
  await expect.poll(() => page.evaluate(() => localStorage.getItem("pintle.pages"))).toBeNull();
  await page.reload();
  await page.locator("input[name=token]").waitFor();
  await expect.poll(() => first.count()).toBe(0);
});

test("a link signs in once, with its role and without its code in the address; a second time, or a wrong one, says why", async () => {
  await serve({ replies: [DONE] });
  // People make links: at a terminal. Its address is that of the configuration, and this server listens elsewhere.
  const code = /#code=([\w-]+)/.exec(gateway.terminal("script -qec 'pintle serve link --role viewer' /dev/null"))?.[1] ?? "";
  expect(code.length).toBeGreaterThan(16);
  const page = await (await rig.person()).newPage();
  await page.goto(`${gateway.url}/#code=${code}`);
  await expect.poll(() => page.getByTestId("role").innerText()).toContain("viewer");
  expect(page.url()).not.toContain(code);
  expect(await page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage }) + JSON.stringify(history.state))).not.toContain(code);
  await page.reload();
  await page.getByTestId("role").waitFor();
  // Whoever is signed in goes on: a link that was used takes nothing away.
  await page.goto("about:blank");
  await page.goto(`${gateway.url}/#code=${code}`);
  await page.getByTestId("role").waitFor();
  const second = await (await rig.person()).newPage();
  for (const bad of [code, "nothing"]) {
    await second.goto(`${gateway.url}/hooks#code=${bad}`);
    await second.getByRole("alert").getByText("A link signs in once, within two minutes.").waitFor();
    expect(second.url()).not.toContain("code");
    await second.goto("about:blank");
  }
});

test("a connection that is cut is said, and comes back with what was missed", async () => {
  await serve({ replies: [DONE] });
  const page = await signedIn(await rig.person(), gateway, "/hooks/new", "anna");
  await page.getByLabel("Name", { exact: true }).fill("typed and not lost");
  gateway = await gateway.restart(async () => {
    await page.getByText("The connection to the server is lost. Trying again…").waitFor();
  });
  await page.getByText("The connection to the server is lost. Trying again…").waitFor({ state: "detached" });
  await expect.poll(() => page.getByLabel("Name", { exact: true }).inputValue()).toBe("typed and not lost");
  await page.getByRole("link", { name: "Hooks", exact: true }).first().click();
  await page.getByText("pii-redactor").first().waitFor();
});

test("everything is reached with keys alone", async () => {
  await serve({ replies: [DONE] });
  const page = await signedIn(await rig.person(), gateway, "/hooks", "anna");
  await page.getByText("pii-redactor").first().waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("/");
  await page.keyboard.type("pii");
  await expect.poll(() => page.url()).toContain("q=pii");
  await page.keyboard.press("Tab");
  await page.locator(":focus").evaluate((focused) => (focused as HTMLElement).blur());
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /pii-redactor/ }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").waitFor();
  await page.keyboard.type("chain");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Chain" }).waitFor();
  // The focus comes to everything in a form, and out of its editor.
  await page.getByLabel("Tool", { exact: true }).focus();
  await page.locator(".cm-content").waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await expect.poll(() => page.locator(":focus").innerText()).toBe("Show the chain");
  await page.keyboard.press("Enter");
  await page.getByTestId("answer").getByText("Nothing was run.").waitFor();
});
