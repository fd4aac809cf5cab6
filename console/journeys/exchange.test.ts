import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { done, go } from "./people.ts";
import { DONE, Gateway, type Reply, Rig, rule, scripted, signedIn } from "./rig.ts";

let rig: Rig;
let gateway: Gateway;
let page: Page;

const HOOK = `#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\\([0-9]*\\).*/\\1/')
  printf '{"jsonrpc":"2.0","id":%s,"result":{"ok":true}}\\n' "$id"
done
`;
const CONFIG = `
[hooks.processes.freeze]
enabled = true
command = ["sh", "freeze.sh"]
intercept = ["before_tool"]
matcher = "^write_file$"
`;

const LOOKS: Reply = { tool_calls: [".", "a", "b"].map((path) => ({ name: "list_dir", arguments: { path } })) };

beforeAll(async () => {
  rig = await Rig.start();
  gateway = await Gateway.start({ replies: [LOOKS, DONE], agent: 'tools = ["list_dir"]\n', config: CONFIG, files: { "freeze.sh": HOOK } });
  page = await signedIn(await rig.person(), gateway, "/hooks", "anna");
  await rule(page, scripted("guard", "^exec$", { decision: "block", reason: "no" }, { priority: 7 }));
  await rule(page, { name: "tells", event: "stop", handler_type: "http", scope: "tenant", config: { url: "https://a.example/x", headers: { Authorization: "Bearer s3cret-of-the-hook" } } });
  await page.reload();
});
afterAll(async () => {
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

async function exported(): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  return readFileSync(await download.path(), "utf8");
}

const comes = (name: string) => page.getByRole("table", { name: "Records of the file" }).locator(`tr[data-name="${name}"]`);

test("hooks of the configuration stand in the list with where they come from, and cannot be changed there", async () => {
  // It is asked at one checkpoint, and told of what goes on at another.
  const row = page.locator("[data-configured=freeze]").first();
  await row.waitFor();
  // Where it stands on the disk is for owners.
  await expect.poll(() => row.innerText()).not.toContain("pintle.toml");
  const owner = await signedIn(await rig.person(), gateway, "/hooks", "system");
  await owner.locator("[data-configured=freeze]").first().getByText("pintle.toml").waitFor();
  // It has a page of its own, to read, which has an address.
  await row.getByRole("link", { name: "freeze" }).click();
  await page.getByRole("heading", { name: /freeze/ }).waitFor();
  await page.getByRole("row").filter({ hasText: "before_tool" }).waitFor();
  await expect.poll(() => page.url()).toMatch(/\/hooks\/configured\/process\/freeze$/);
  await page.reload();
  await page.getByRole("heading", { name: /freeze/ }).waitFor();
  await go(page, "/hooks/configured/process/never");
  await page.getByText("There is no such hook").waitFor();
  await go(page, "/hooks");
  await row.waitFor();
  await page.getByLabel("Handler").selectOption("process");
  await expect.poll(() => page.locator("[data-row]").allInnerTexts()).toEqual(["freeze", "freeze"]);
  await row.waitFor();
  await page.getByLabel("Handler").selectOption("");
  await page.locator("[data-row]").first().waitFor();
});

test("what is exported holds no secret, and the command line knows it as the same", async () => {
  await page.getByLabel("Search name or matcher").fill("guard");
  await expect.poll(() => page.locator("[data-row]").count()).toBe(1);
  const one = await exported();
  expect(JSON.parse(one)).toMatchObject([{ name: "guard", priority: 7 }]);
  const file = join(gateway.root, "hooks.json");
  writeFileSync(file, one);
  // Rules are added by people: at a terminal.
  const said = gateway.terminal(`script -qec 'pintle hooks add "${file}"' /dev/null`);
  expect(said).toContain("guard at pre_tool_use is already there, unchanged");
  await page.getByLabel("Search name or matcher").fill("");
  await expect.poll(() => page.locator("[data-row]").count()).toBeGreaterThan(1);
  const all = await exported();
  expect(all).toContain("tells");
  expect(all).not.toContain("s3cret");
});

test("a file says what would come of it before anything is written", async () => {
  const [guard] = JSON.parse(await exported().then((text) => JSON.stringify((JSON.parse(text) as { name: string }[]).filter(({ name }) => name === "guard")))) as Record<string, unknown>[];
  const records = [
    guard,
    { ...guard, name: "new one" },
    { ...guard, name: "cannot be read", matcher: "(" },
    { ...guard, name: "strange", event: "before_tea" },
    { name: "needs it", event: "stop", handler_type: "http", scope: "tenant", config: { url: "https://a.example/x", headers: { Authorization: "********" } } },
    7,
  ];
  await page.getByRole("link", { name: "Import" }).click();
  await page.getByLabel("Or paste it here").fill("[[hook]]\nname = 1");
  await page.getByText("This is not JSON").waitFor();
  await page.getByLabel("Or paste it here").fill(JSON.stringify(records));
  await comes("guard").getByText("the same").waitFor();
  await comes("new one").getByText("new", { exact: true }).waitFor();
  await comes("cannot be read").getByText("refused").waitFor();
  await comes("strange").getByText('event: "before_tea" is unknown').waitFor();
  await comes("needs it").getByText("must be sent anew").waitFor();
  await expect.poll(() => page.getByTestId("trial").innerText()).toContain("Nothing is written yet");
  await page.getByRole("button", { name: "Write 1 hook" }).click();
  await comes("new one").getByText("in force").waitFor();
  // The same file again: nothing is left to do. What is different is written over what is there when somebody says so.
  await page.getByLabel("Or paste it here").fill(JSON.stringify([{ ...guard, name: "new one" }, { ...guard, priority: 70 }]));
  await comes("new one").getByText("the same").waitFor();
  await comes("guard").getByText("priority: 7 here, 70 in the file").waitFor();
  await expect.poll(() => page.getByRole("button", { name: "Write 0 hooks" }).isDisabled()).toBe(true);
  await page.getByLabel("Also write 1 record over what is there").check();
  await page.getByRole("button", { name: "Write 1 hook" }).click();
  // What stands there acts otherwise from then on: the page asks, and names it.
  await page.getByRole("dialog").getByText("Write over 1 hook?").waitFor();
  await page.getByRole("dialog").getByText("priority: 7 here, 70 in the file").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await comes("guard").getByText("different").waitFor();
  await page.getByRole("button", { name: "Write 1 hook" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Write 1 hook" }).click();
  await comes("guard").getByText("in force").waitFor();
});

test("secrets of what is there stay, and of a file that is not in order nothing is written", async () => {
  await go(page, "/hooks");
  const [tells] = (JSON.parse(await exported()) as { name: string }[]).filter(({ name }) => name === "tells") as Record<string, unknown>[];
  await page.getByRole("link", { name: "Import" }).click();
  const file = [{ ...tells, priority: 5 }, { ...tells, name: "first" }, { ...tells, name: "second", config: { url: "https://a.example/y" } }];
  await page.getByLabel("Or paste it here").fill(JSON.stringify(file));
  await comes("tells").getByText("priority: 0 here, 5 in the file").waitFor();
  // A mask stands for no secret of another hook.
  await comes("first").getByText("refused").waitFor();
  await page.getByLabel("Also write 1 record over what is there").check();
  // Meanwhile somebody makes the one that the file has, too, and another one.
  const other = await signedIn(await rig.person(), gateway, "/chat", "ben");
  await rule(other, { ...tells, name: "second", config: { url: "https://b.example/z" }, scope: "tenant" }, "ben");
  await page.getByRole("button", { name: "Write 2 hooks" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Write 2 hooks" }).click();
  await comes("tells").getByText("in force").waitFor();
  await comes("second").getByText("in force").waitFor();
  await page.getByLabel("Or paste it here").fill(JSON.stringify([{ ...tells, name: "third", config: { url: "https://a.example/third" } }, { ...tells, name: "second", config: { url: "https://c.example/x" } }]));
  await comes("third").getByText("new", { exact: true }).waitFor();
  await comes("second").getByText("different").waitFor();
  await page.getByRole("button", { name: "Write 1 hook" }).waitFor();
  // Somebody is faster: the record is another one now, and with it nothing of the file comes.
  await rule(other, { ...tells, name: "third", config: { url: "https://d.example/" }, scope: "tenant" }, "ben");
  await page.getByRole("button", { name: "Write 1 hook" }).click();
  await page.getByText("Nothing was written.").waitFor();
  await page.getByRole("alert").getByText("differs").waitFor();
});

test("the list says of each hook when it ran, how much it blocked and how long it takes", async () => {
  await rule(page, { name: "counts", event: "pre_tool_use", handler_type: "script", scope: "tenant", matcher: "^list_dir$", config: { source: 'function handle(event) { return { decision: event.toolInput.path === "." ? "allow" : "block" }; }' } });
  await done(page, "anna", "chat.send", { message: "look three times" });
  await go(page, "/hooks");
  await page.getByRole("columnheader", { name: "p95" }).waitFor();
  const said = (name: string): Promise<string> => page.locator("tr", { has: page.getByRole("link", { name, exact: true }) }).first().innerText();
  // It ran a moment ago, blocked two of its three runs, and took some time. One that never ran has none of it.
  await expect.poll(() => said("counts")).toMatch(/(now|\d+ (sec|min)\. ago)\s+2 of 3\s+\d+(\.\d+)? (µs|ms)$/);
  await expect.poll(() => said("guard")).toMatch(/–\s+–\s+–$/);
  await page.getByLabel("Search name or matcher").fill("counts");
  await page.getByRole("link", { name: "counts", exact: true }).click();
  await page.getByRole("tab", { name: "History" }).click();
  await expect.poll(() => page.locator("[data-row]").count()).toBe(3);
  await done(page, "anna", "hooks.delete", { hookId: new URL(page.url()).pathname.split("/").pop(), reason: "it counted" });
});

test("hooks stay in the order that somebody reads, until they ask for the new one", async () => {
  const made = [await rule(page, scripted("order-a", "^exec$", { decision: "allow" }, { priority: 50 })), await rule(page, scripted("order-b", "^exec$", { decision: "allow" }, { priority: 40 }))];
  // A page that begins has both: what came while another one was read might wait.
  await page.goto(`${gateway.url}/hooks`);
  await page.getByLabel("Search name or matcher").fill("order-");
  const names = (): Promise<string[]> => page.locator("[data-row]").allInnerTexts();
  await expect.poll(names).toEqual(["order-a", "order-b"]);
  await done(page, "ben", "hooks.update", { hookId: made[1], updates: { priority: 60 } });
  const order = page.getByRole("button", { name: "Show the new order" });
  await order.waitFor();
  expect(await names()).toEqual(["order-a", "order-b"]);
  await order.click();
  await expect.poll(names).toEqual(["order-b", "order-a"]);
  expect(await order.count()).toBe(0);
  made.push(await rule(page, scripted("order-c", "^exec$", { decision: "allow" }, { priority: 70 }), "ben"));
  const more = page.getByRole("button", { name: "Show 1 new" });
  await more.waitFor();
  expect(await names()).toEqual(["order-b", "order-a"]);
  await more.click();
  await expect.poll(names).toEqual(["order-c", "order-b", "order-a"]);
  for (const hookId of made) {
    await done(page, "ben", "hooks.delete", { hookId, reason: "it was a test" });
  }
  await expect.poll(names).toEqual([]);
});

test("the change log says who changed what, and leads to the versions", async () => {
  await go(page, "/hooks");
  await page.getByRole("link", { name: "Change log" }).click();
  await page.getByRole("list", { name: "Change log" }).waitFor();
  const first = page.locator("[data-row]").first();
  await expect.poll(() => page.locator("[data-row]").filter({ hasText: "guard" }).first().innerText()).toMatch(/guard\s+changed by anna\s+Version 2\s*·\s*priority/);
  await page.getByLabel("Hook", { exact: true }).selectOption({ label: "new one" });
  await expect.poll(() => page.locator("[data-row]").count()).toBe(1);
  await expect.poll(() => first.innerText()).toContain("created by anna");
  await page.getByLabel("Hook", { exact: true }).selectOption("");
  await expect.poll(() => page.locator("[data-row]").count()).toBeGreaterThan(2);
  // What comes meanwhile waits.
  const other = await signedIn(await rig.person(), gateway, "/chat", "ben");
  await rule(other, scripted("later", "^exec$", { decision: "allow" }), "ben");
  await page.getByRole("button", { name: "Show 1 new" }).click();
  await page.locator("[data-row]").filter({ hasText: "later" }).waitFor();
  await page.locator("[data-row]").filter({ hasText: "changed by anna" }).first().click();
  await page.getByRole("tabpanel").getByText(/^Version \d$/).first().waitFor();
  await expect.poll(() => page.url()).toContain("tab=versions");
});

test("a gate is deleted for a reason, which stays in the change log", async () => {
  await go(page, "/hooks");
  await page.getByLabel("Search name or matcher").fill("later");
  await page.getByRole("link", { name: "later", exact: true }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog");
  await expect.poll(() => dialog.getByRole("button", { name: "Delete" }).isDisabled()).toBe(true);
  await dialog.getByLabel("Reason").fill("nobody needs it");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "Hooks" }).waitFor();
  await go(page, "/hooks/changes");
  // Another one was deleted by the same person before.
  await page.locator("[data-row]").filter({ hasText: /later.*deleted by anna.*Because: nobody needs it/ }).waitFor();
});
