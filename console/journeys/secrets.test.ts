import type { Page } from "playwright-core";
import { afterEach, beforeEach, expect, test } from "vitest";

import { DONE, Gateway, LISTS, Rig, rule, signedIn } from "./rig.ts";

/** What is said and must not stay. */
const SECRET = "sk_live_0123456789abcdef";
/** As many rows as a turn here has, and some. */
const ROWS = 24;
const KEYS = `function handle(event) {
  return { decision: "allow", updatedInput: { rawInput: event.rawInput.replace(/sk_[A-Za-z0-9_]+/g, "[a key]") } };
}
`;
const REFUSES = `function handle(event) {
  return /sk_/.test(event.rawInput) ? { decision: "block", reason: "that is a key" } : { decision: "allow" };
}
`;
/** Repeats what it is sent, before the others are asked. */
const REPEATS = { name: "repeats", event: "user_prompt_submit", handler_type: "command", scope: "tenant", priority: 100, config: { command: "cat >&2" } };
const prompts = (name: string, source: string): object => ({ name, event: "user_prompt_submit", handler_type: "script", scope: "tenant", may_rewrite: true, config: { source } });

let rig: Rig;
let gateway: Gateway;

beforeEach(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({ replies: [LISTS, DONE, DONE], agent: 'tools = ["list_dir"]\n' });
});
afterEach(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

/** Everything that a page sent and got that has the secret, from now on. */
function listen(page: Page): string[] {
  const heard: string[] = [];
  const note = (way: string, text: string): void => {
    if (text.includes(SECRET)) {
      heard.push(`${way} ${(JSON.parse(text) as { method?: string }).method ?? text.slice(0, 120)}`);
    }
  };
  page.on("websocket", (socket) => {
    socket.on("framesent", ({ payload }) => note("sent", String(payload)));
    socket.on("framereceived", ({ payload }) => note("got", String(payload)));
  });
  page.on("request", (request) => note(`${request.method()} ${request.url()}`, JSON.stringify(`${request.url()} ${request.postData() ?? ""}`)));
  return heard;
}

/** Where in a page the secret stands: what is shown, what fields hold, and everything that stays in a browser. */
async function stands(page: Page): Promise<string[]> {
  return page.evaluate(async (secret) => {
    const found: string[] = [];
    const look = (where: string, text: string): void => void (text.includes(secret) && found.push(where));
    look("page", new XMLSerializer().serializeToString(document));
    document.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>("input, textarea").forEach((field) => look("field", field.value));
    look("localStorage", JSON.stringify({ ...localStorage }));
    look("sessionStorage", JSON.stringify({ ...sessionStorage }));
    look("address", `${location.href} ${JSON.stringify(history.state)}`);
    look("cookie", document.cookie);
    for (const name of await caches.keys().catch(() => [])) {
      look("caches", name);
    }
    for (const { name } of await indexedDB.databases()) {
      look("indexedDB", name ?? "");
      found.push(`there is a database: ${name}`);
    }
    return found;
  }, SECRET);
}

/** Goes to every page that could show what was said. */
async function everywhere(page: Page): Promise<string[]> {
  const found = await stands(page);
  const pages = page.getByRole("navigation", { name: "Pages" });
  for (const name of ["Overview", "Turns", "Executions", "Chat", "Health"]) {
    await pages.getByRole("link", { name }).click();
    await page.getByRole("heading", { level: 1, name }).waitFor();
    found.push(...(await stands(page)).map((where) => `${name}: ${where}`));
  }
  await pages.getByRole("link", { name: "Turns" }).click();
  await page.locator("[data-row]").first().click();
  await page.getByTestId("detail").waitFor();
  const tree = page.getByRole("tree");
  await tree.focus();
  await page.keyboard.press("Home");
  for (let at = 0; at < ROWS; at += 1) {
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    const wrote = page.getByRole("button", { name: "Show what it wrote" });
    if ((await wrote.count()) > 0) {
      await wrote.click();
      await page.getByText("Nothing of it is kept").waitFor();
      await tree.focus();
    }
    found.push(...(await stands(page)).map((where) => `turn: ${where}`));
  }
  return found;
}

test.each([
  ["redacted", "redacts", KEYS, 1],
  ["blocked", "refuses", REFUSES, 1],
] as const)("a prompt that is %s stands nowhere after the frame that sent it", async (what, name, source, times) => {
  const page = await signedIn(await rig.person(), gateway, "/chat", "anna");
  await rule(page, prompts(name, source));
  await rule(page, REPEATS);
  const heard = listen(page);
  await page.reload();
  await page.getByRole("button", { name: "New" }).click();
  await page.getByLabel("Message").fill(`my key is ${SECRET}, use it`);
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(what === "blocked" ? "[data-kind=blocked]" : "[data-kind=answer]").first().waitFor();
  if (what === "redacted") {
    await page.getByText("my key is [a key], use it").first().waitFor();
    await page.getByText("All done.").waitFor();
  }
  expect(await stands(page)).toEqual([]);
  await page.reload();
  await page.getByLabel("Message").waitFor();
  expect(await everywhere(page)).toEqual([]);
  expect(heard).toEqual(Array.from({ length: times }, () => "sent chat.send"));
});
