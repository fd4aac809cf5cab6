import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { BrowserContext, Locator, Page } from "playwright-core";
import { afterEach, beforeEach, expect, test } from "vitest";

import { en } from "../src/words/en.ts";
import { ask, done, go, HOSTILE, HOSTILE_NAME, outside, parks, sideways } from "./people.ts";
import { DONE, Gateway, type Reply, Rig, scripted, signedIn, TOKEN } from "./rig.ts";
import { withSkill } from "./worlds.ts";

/** As much of it as a name of a file may have; no slash stands in it. */
const FILE = `<img src=x onerror="window.__ran=1">${"w".repeat(120)}.txt`;
/** As a browser may call itself. */
const DEVICE = `<img src=x onerror="window.__ran=1"> ${"D".repeat(120)}`;
const WIDTHS = [360, 1280] as const;

/** Breaks off with a hostile line on its standard error. */
const DIES = `import sys\nsys.stderr.write(${JSON.stringify(HOSTILE)} + "\\n")\nsys.stderr.flush()\nsys.exit(3)\n`;
const CHILDREN = `
[hooks.processes.dies]
enabled = true
command = ["python3", "dies.py"]
intercept = ["before_tool"]
matcher = "^never$"

[mcp.servers.dies]
command = ["python3", "dies.py"]
`;
const AGENT = `tools = ["list_dir", "read_file", "exec", "delegate"]
skills = ["careful"]

[agents.scout]
model = "scripted/test"
description = ${JSON.stringify(HOSTILE)}
tools = ["list_dir"]
`;

const call = (name: string, input: object): Reply => ({ tool_calls: [{ name, arguments: input }] });
const REPLIES: Reply[] = [
  { tool_calls: [{ name: "list_dir", arguments: { path: "." } }, { name: "read_file", arguments: { path: FILE } }] },
  call("delegate", { agent: "scout", task: HOSTILE }),
  { reasoning: HOSTILE, text: HOSTILE },
  { reasoning: HOSTILE, text: [HOSTILE, " All done."] },
  call("exec", { command: HOSTILE, [HOSTILE]: HOSTILE }),
  DONE,
];

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

/** Somebody whose browser notes whom it asks. */
async function watched(asked: Set<string>, options: Parameters<Rig["person"]>[0] = {}): Promise<BrowserContext> {
  const context = await rig.person(options);
  context.on("request", (request) => asked.add(new URL(request.url()).host));
  return context;
}

/** What is wrong with what a page shows: something ran, or it is wider than the screen, or the text is not there at all. */
async function wrong(page: Page, width: number): Promise<string[]> {
  await page.setViewportSize({ width, height: 800 });
  const ran = await page.evaluate(() => (window as unknown as { __ran?: number }).__ran !== undefined);
  return [...(await sideways(page)), ...(ran ? ["a text ran"] : []), ...((await shows(page)) ? [] : ["the text is not shown"])];
}

/** Whether the text stands in the page or in what is open over it; of fields what they hold. */
const shows = (page: Page): Promise<boolean> =>
  page.evaluate(() => {
    const places = [...document.querySelectorAll<HTMLElement>("main, [role=dialog]")];
    const fields = [...document.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>("main input, main textarea")];
    return places.some((one) => one.innerText.includes("onerror=")) || fields.some((one) => one.value.includes("onerror="));
  });

/** Waits until what turns a text round stands there as its code. */
const spelled = async (place: Locator): Promise<void> => {
  await expect.poll(async () => /onerror=/.test(await place.innerText()) && !(await place.innerText()).includes("\u202E")).toBe(true);
};

/** Every place of `all`, at each width, with what is wrong there. */
async function checked(page: Page, all: readonly (readonly [string, (page: Page) => Promise<unknown>])[]): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const [name, open] of all) {
    await page.setViewportSize({ width: 1280, height: 800 });
    // From a page without it, so that what is seen is not what was there before.
    await go(page, "/settings/edition");
    await expect.poll(() => page.evaluate(() => document.querySelector("main")?.innerText.includes("onerror=") ?? true), { message: `before ${name}` }).toBe(false);
    await open(page).catch((error: unknown) => Promise.reject(new Error(`${name}: ${String(error)}`)));
    await expect.poll(() => shows(page), { message: name }).toBe(true);
    for (const width of WIDTHS) {
      const bad = await wrong(page, width);
      if (bad.length > 0) {
        found[`${name}, ${width} px`] = bad;
      }
    }
    await page.keyboard.press("Escape");
  }
  return found;
}

test("what models, tools, hooks, skills, files and children say runs nothing and overflows nothing, wherever it is shown", async () => {
  gateway = await Gateway.start({ replies: REPLIES, agent: AGENT, config: CHILDREN, files: { ...withSkill(HOSTILE, ["list_dir"]), "dies.py": DIES } });
  writeFileSync(join(gateway.root, "work", FILE), HOSTILE);
  const asked = new Set<string>();
  const page = await signedIn(await watched(asked, { userAgent: DEVICE }), gateway, "/chain", "system");
  const says = async (record: object): Promise<string> => String((await done(page, "system", "hooks.create", record))["hookId"]);
  // A command that says it on both of its outputs, asks with it, and would rewrite with it.
  const answer = JSON.stringify({ decision: "ask", reason: HOSTILE, additionalContext: HOSTILE, updatedInput: { command: HOSTILE } });
  writeFileSync(join(gateway.root, "work", "answer.json"), answer);
  writeFileSync(join(gateway.root, "work", "said.txt"), HOSTILE);
  const asks = await says({ name: HOSTILE_NAME, event: "pre_tool_use", handler_type: "command", scope: "tenant", matcher: "^exec$", if_expr: `tool_name != ${JSON.stringify(HOSTILE)}`, config: { command: "cat said.txt >&2; cat answer.json" } });
  const talks = await says({ name: "talks", event: "pre_tool_use", handler_type: "command", scope: "tenant", matcher: "^list_dir$", config: { command: "cat said.txt; cat said.txt >&2" } });
  await done(page, "system", "hooks.update", { hookId: asks, updates: { priority: 3, config: { command: `cat said.txt >&2; cat answer.json # ${HOSTILE}` } } });
  await done(page, "system", "hooks.create", scripted("off", "^never$", { decision: "block", reason: HOSTILE }, { name: `${HOSTILE_NAME} off` }));
  const off = await says(scripted("gone", "^never$", { decision: "block", reason: "x" }));
  await done(page, "system", "hooks.toggle", { hookId: off, enabled: false, reason: "<img src=x onerror=__ran=1>" });
  const key = "agent:main:ws:direct:hostile";
  await done(page, "system", "chat.send", { message: HOSTILE, agentId: "main", sessionKey: key });
  await done(page, "system", "sessions.patch", { key, label: HOSTILE });
  // The second turn waits for a person.
  await parks(page, "system", "and the command", "hostile-2");
  const open = (path: string, ready: (at: Page) => Promise<unknown>) => async (at: Page) => {
    await go(at, path);
    await ready(at);
  };
  const row = (at: Page) => at.locator("main [data-row]").first().waitFor();
  const first = async (at: Page): Promise<void> => {
    await row(at);
    await at.locator("main [data-row]").first().click();
  };
  const bad = await checked(page, [
    ["overview", open("/", (at) => at.getByTestId("tiles").waitFor())],
    ["list of conversations", open("/chat", (at) => at.locator("aside li").first().waitFor())],
    [
      "conversation, with results of tools",
      open(`/chat/${key}`, async (at) => {
        await at.locator("[data-kind=call]").nth(2).waitFor();
        for (const folded of await at.locator("[data-kind=call] summary, [data-kind=answer] summary").all()) {
          await folded.click();
        }
        await at.getByRole("region", { name: "Result" }).first().waitFor();
      }),
    ],
    ["text of a skill", open(`/chat/${key}`, (at) => at.locator("[data-kind=note]").first().waitFor())],
    [
      "file beside a message",
      open("/chat/agent:main:ws:direct:files", async (at) => {
        await at.locator("input[type=file]").setInputFiles([{ name: FILE, mimeType: "text/plain", buffer: Buffer.from("x") }]);
        await at.locator("[data-attached=kept]").waitFor();
      }),
    ],
    ["approvals", open("/approvals", row)],
    [
      "approval",
      open("/approvals", async (at) => {
        await first(at);
        await at.getByTestId("call").waitFor();
      }),
    ],
    ["turns", open("/turns", row)],
    ["hooks", open("/hooks", row)],
    ["change log", open("/hooks/changes", row)],
    [
      "versions",
      open(`/hooks/${asks}?tab=versions`, async (at) => {
        await at.getByText("What changed").first().click();
        await at.getByRole("table").first().waitFor();
      }),
    ],
    ["history", open(`/hooks/${asks}?tab=history`, row)],
    [
      "test of a hook: reason, rewrite, context, stderr",
      open(`/hooks/${asks}`, async (at) => {
        await at.getByRole("button", { name: "Run test" }).click();
        await at.getByTestId("result").getByText("stderr").waitFor();
        await at.getByRole("table", { name: "Input before and after" }).waitFor();
        await spelled(at.getByTestId("result"));
      }),
    ],
    [
      "test of a hook: stdout",
      open(`/hooks/${talks}`, async (at) => {
        await at.getByRole("button", { name: "Run test" }).click();
        await at.getByTestId("result").getByText("stdout").waitFor();
        await spelled(at.getByTestId("result"));
      }),
    ],
    ["form", open(`/hooks/${asks}?tab=edit`, (at) => at.getByRole("button", { name: "Discard changes" }).waitFor())],
    ["why it is off", open(`/hooks/${off}`, (at) => at.getByText("Off because").waitFor())],
    [
      "import",
      open("/hooks/import", async (at) => {
        const record = { name: HOSTILE_NAME, event: "pre_tool_use", handler_type: "command", scope: "tenant", matcher: "^exec$", config: { command: HOSTILE } };
        await at.locator("textarea").fill(JSON.stringify([record, { ...record, name: `${HOSTILE_NAME} 2`, matcher: `(${HOSTILE}` }, { ...record, event: HOSTILE }, HOSTILE]));
        await at.locator("table tbody tr").nth(3).waitFor();
      }),
    ],
    ["chain", open(`/chain?moment=call&tool=exec&input=${encodeURIComponent(JSON.stringify({ command: HOSTILE }))}`, (at) => at.locator("main ol li").first().waitFor())],
    ["executions", open("/executions", row)],
    [
      "execution",
      open("/executions?decision=ask", async (at) => {
        await first(at);
        await at.locator("dl").waitFor();
        await spelled(at.locator("dl"));
      }),
    ],
    [
      "health: what children wrote",
      open("/health", async (at) => {
        await at.getByRole("table", { name: "Parts" }).getByText("onerror=").first().waitFor();
        await spelled(at.getByRole("table", { name: "Parts" }));
      }),
    ],
    [
      "hook",
      open(`/hooks/${asks}`, async (at) => {
        await at.locator("main dl").first().waitFor();
        await spelled(at.locator("main dl").first());
      }),
    ],
    ["devices", open("/settings/you", (at) => at.getByRole("table").waitFor())],
    [
      "find",
      open("/chain", async (at) => {
        await at.keyboard.press("Control+k");
        await at.getByRole("combobox").fill("onerror");
        await at.getByRole("option").first().waitFor();
      }),
    ],
  ]);
  expect(bad).toEqual({});
  // Each row of the turn, those of the sub-agent among them.
  await page.setViewportSize({ width: 1280, height: 800 });
  const { turns } = (await done(page, "system", "turns.list", {})) as { turns: { turnId: string; subAgent: boolean }[] };
  await go(page, `/turns/${turns.filter(({ subAgent }) => !subAgent).at(-1)?.turnId}`);
  await page.getByRole("tree").waitFor();
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    await page.getByRole("tree").focus();
    await page.keyboard.press("Home");
    const chosen = page.locator("[role=treeitem][aria-selected=true]");
    const seen = new Map<string, string>();
    for (let place = page.url(); !seen.has(place); place = page.url()) {
      seen.set(place, await chosen.innerText());
      expect([width, seen.get(place), await sideways(page), await page.evaluate(() => (window as unknown as { __ran?: number }).__ran)]).toEqual([width, seen.get(place), [], undefined]);
      await page.keyboard.press("j");
    }
    expect([...seen.values()].some((row) => row.includes(en.turns.child("scout")))).toBe(true);
  }
  expect(asked).toEqual(new Set([new URL(gateway.url).host]));
}, 180_000);

test("the name of a tenant is shown as it is, and nothing runs or overflows", async () => {
  gateway = await Gateway.start({ replies: [], env: { PINTLE_EDITION: "standard", PINTLE_ENCRYPTION_KEY: "ab".repeat(32) } });
  const asked = new Set<string>();
  const context = await watched(asked);
  const fresh = await outside(context, gateway);
  await done(fresh, "system", "tenants.create", { slug: "hostile", name: HOSTILE_NAME });
  expect(await ask(fresh, "system", "hooks.create", scripted("of-hostile", "^exec$", { decision: "allow" }), TOKEN, "hostile")).toMatchObject({ ok: true });
  const page = await signedIn(context, gateway, "/settings/tenants", "system");
  const open = (path: string) => (at: Page) => go(at, path);
  const bad = await checked(page, [
    ["tenants", open("/settings/tenants")],
    ["hooks of all tenants", open("/hooks?tenant=all")],
    [
      "close one",
      async (at) => {
        await go(at, "/settings/tenants");
        await at.locator('tr[data-name="hostile"]').getByRole("button", { name: /^Close/ }).click();
        await at.getByRole("dialog").getByText("onerror=").first().waitFor();
      },
    ],
  ]);
  await page.setViewportSize({ width: 1280, height: 800 });
  await go(page, "/settings/tenants");
  await page.locator('tr[data-name="hostile"]').getByRole("button", { name: /^Go there/ }).click();
  await page.getByTestId("role").getByText("onerror=").waitFor();
  const there = await checked(page, [
    ["in it: you", open("/settings/you")],
    ["in it: chain", open("/chain")],
  ]);
  expect({ ...bad, ...there }).toEqual({});
  expect(asked).toEqual(new Set([new URL(gateway.url).host]));
});
