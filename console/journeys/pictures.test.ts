import { mkdirSync, readdirSync } from "node:fs";
import { resolve } from "node:path";

import type { Page } from "playwright-core";
import { expect, test } from "vitest";

import { done } from "./people.ts";
import { Gateway, type Reply, Rig, rule, signedIn } from "./rig.ts";

const FOLDER = resolve(import.meta.dirname, "../../docs/images/console");
/** Sketches of the pages, and how large each is drawn unless it is a desk. */
const SKETCHES = resolve(import.meta.dirname, "../../docs/design/console");
const PHONES: Readonly<Record<string, { width: number; height: number }>> = { approval: { width: 500, height: 900 } };
const wanted = process.env["PINTLE_PICTURES"] === "1";

const call = (command: string): Reply => ({ tool_calls: [{ name: "exec", arguments: { command } }] });
const REPLIES: Reply[] = [
  call("git status --short"),
  call("git push --force origin main"),
  { text: "I may not force the push: **no-force-push** says that people do that. The tree is clean, so I can push to a branch of its own instead:\n\n1. create `release-2`\n2. push it, and open a pull request" },
  call("git push origin HEAD:release-2"),
  { text: "Done: the branch `release-2` is pushed." },
];

/** The keys in the picture: for what, whose, and what they may beside reading. */
const KEYS: readonly (readonly [string, string, readonly string[]])[] = [
  ["nightly build", "ci", ["talk"]],
  ["dashboard", "grafana", []],
  ["on call", "anna", ["talk", "approve"]],
];

/** Answers everything with yes. */
const SHAKES = `while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\\([0-9]*\\).*/\\1/')
  printf '{"jsonrpc":"2.0","id":%s,"result":{"ok":true}}\\n' "$id"
done
`;

/** A hook of the configuration. */
const FREEZE = '\n[hooks.processes.freeze]\nenabled = true\ncommand = ["sh", "freeze.sh"]\nintercept = ["before_tool"]\nmatcher = "^write_file$"\n';
const MASKS = '\n[hooks.processes.no-keys]\nenabled = true\ncommand = ["python3", "no-keys.py"]\nintercept = ["before_llm"]\n';

/** Takes keys out of what the model is sent. */
const TAKES = `import json, re, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "hook.before_llm":
        messages = [dict(one) for one in message["params"]["messages"]]
        for one in messages:
            one["content"] = re.sub(r"tok-[0-9]+", "[a key]", one["content"])
        result = {"action": "modify", "request": {"messages": messages}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
`;

const SCRIPT = `function handle(event) {
  if (/push .*--force/.test(event.toolInput.command)) {
    return { decision: "block", reason: "forced pushes are done by people" };
  }
  return { decision: "allow" };
}
`;

/** A file with hooks: one that is there, one that is new, and one that cannot be taken. */
const record = (name: string, more: object): object => ({ name, event: "pre_tool_use", handler_type: "script", scope: "tenant", matcher: "^exec$", priority: 100, config: { source: SCRIPT }, ...more });
const RECORDS = JSON.stringify([record("no-force-push", {}), record("no-pipes-to-a-shell", {}), record("ask-before-push", {}), record("notify", { matcher: "(" })], null, 2);

test.runIf(wanted)("pictures of the pages", async () => {
  mkdirSync(FOLDER, { recursive: true });
  const rig = await Rig.start();
  const gateway = await Gateway.start({ replies: REPLIES, agent: 'tools = ["exec", "list_dir"]\n', config: FREEZE + MASKS, files: { "freeze.sh": SHAKES, "no-keys.py": TAKES } });
  const desk = await rig.person({ viewport: { width: 1280, height: 760 } });
  const page = await signedIn(desk, gateway, "/hooks", "anna");
  const shot = (name: string, of: Page = page): Promise<Buffer> => of.screenshot({ path: `${FOLDER}/${name}.png` });
  const id = await rule(page, { name: "no-force-push", event: "pre_tool_use", handler_type: "script", scope: "tenant", matcher: "^exec$", priority: 100, config: { source: SCRIPT } });
  await rule(page, { name: "ask-before-push", event: "pre_tool_use", handler_type: "script", scope: "tenant", matcher: "^exec$", if_expr: 'tool_input.command.contains("HEAD:")', config: { source: 'function handle() { return { decision: "ask", reason: "pushes need a second pair of eyes" } }' } });
  await rule(page, { name: "notify", event: "stop", handler_type: "http", scope: "tenant", config: { url: "https://notify.example.com/turns", headers: { Authorization: "Bearer x" } } });
  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await page.getByRole("button", { name: "New" }).click();
  await page.getByLabel("Message").fill("Push my branch with tok-4711, force it if you must");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("open a pull request").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  await page.getByLabel("Message").fill("Go ahead");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("button", { name: "Approve once" }).waitFor();
  await shot("chat");
  const phone = await rig.person({ viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, colorScheme: "dark" });
  const small = await signedIn(phone, gateway, "/approvals", "anna");
  await small.getByRole("link", { name: /exec/ }).first().click();
  await small.getByRole("button", { name: "Approve once" }).waitFor();
  await shot("approval", small);
  await page.getByRole("link", { name: "Approvals" }).click();
  await page.getByText("HEAD:release-2").waitFor();
  await shot("approvals");
  await small.getByRole("button", { name: "Approve once" }).click();
  await small.getByText("by anna").waitFor();
  await page.getByRole("link", { name: "Hooks" }).click();
  await page.getByText("no-force-push").waitFor();
  await page.getByText("1 of").first().waitFor();
  await shot("hooks");
  await page.goto(`${gateway.url}/hooks/${id}?tab=edit`);
  await page.getByRole("tab", { name: "Edit" }).waitFor();
  await page.getByRole("button", { name: "Run test" }).click();
  await page.getByTestId("result").waitFor();
  await page.locator(".cm-content").nth(1).waitFor();
  await shot("hook");
  await page.goto(`${gateway.url}/hooks/${id}`);
  await page.getByRole("tab", { name: "Overview" }).waitFor();
  await page.locator("dl").first().waitFor();
  await page.locator(".cm-content").first().waitFor();
  await shot("hook-overview");
  await page.getByRole("tab", { name: "History" }).click();
  await page.locator("[data-row]").first().waitFor();
  await shot("history");
  await done(page, "anna", "hooks.update", { hookId: id, updates: { timeout_ms: 2_000 } });
  await page.getByRole("tab", { name: "Versions" }).click();
  await page.getByText("What changed").first().click();
  await page.getByRole("table", { name: /Version 1 and version 2/ }).waitFor();
  await shot("versions");
  await done(page, "anna", "hooks.update", { hookId: id, updates: { timeout_ms: 5_000 } });
  await page.getByRole("link", { name: "Turns", exact: true }).click();
  await page.locator("[data-row]").nth(1).waitFor();
  await shot("turns");
  await page.locator("[data-row]").nth(1).click();
  await page.getByTestId("detail").waitFor();
  await shot("turn");
  await page.getByRole("treeitem").filter({ hasText: /Model/ }).first().click();
  await page.getByRole("table", { name: /Changed by no-keys/ }).waitFor();
  await shot("seen");
  await small.getByRole("link", { name: "Turns", exact: true }).click();
  await small.locator("[data-row]").nth(1).click();
  await small.getByTestId("detail").waitFor();
  await shot("turn-phone", small);
  await page.getByRole("link", { name: "Overview", exact: true }).click();
  await page.getByTestId("tiles").waitFor();
  await page.getByText("Recently blocked").waitFor();
  await shot("overview");
  await page.getByRole("link", { name: "Executions" }).click();
  await page.getByText("forced pushes").first().waitFor();
  await shot("executions");
  await page.getByText("forced pushes").first().click();
  await page.getByTestId("answer").getByText("was refused by").waitFor();
  await shot("execution");
  await page.getByRole("link", { name: "Chain" }).click();
  await page.getByRole("button", { name: "Show the chain" }).click();
  await page.getByText("is asked").first().waitFor();
  await shot("chain");
  await page.getByRole("link", { name: "Health" }).click();
  await page.getByTestId("budget").waitFor();
  await shot("health");
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByRole("link", { name: "API keys" }).click();
  for (const [name, owner, scopes] of KEYS) {
    await page.getByRole("button", { name: "New API key" }).click();
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Owner").fill(owner);
    for (const scope of scopes) {
      await page.getByLabel(scope, { exact: true }).check();
    }
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "I have saved it" }).click();
  }
  await page.locator("tr[data-name]").nth(KEYS.length - 1).waitFor();
  await shot("settings-keys");
  for (const part of ["You", "Members", "Edition"]) {
    await page.getByRole("navigation", { name: "Settings" }).getByRole("link", { name: part }).click();
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.getByRole("main").locator("table, section, ul").first().waitFor();
    await shot(`settings-${part.toLowerCase()}`);
  }
  await page.goto(`${gateway.url}/hooks/changes`);
  await page.locator("[data-row]").nth(2).waitFor();
  await shot("changes");
  await page.goto(`${gateway.url}/hooks/import`);
  await page.getByLabel("Or paste it here").fill(RECORDS);
  await page.getByText("the same", { exact: true }).waitFor();
  await page.getByText("1 refused").waitFor();
  await shot("import");
  await page.goto(`${gateway.url}/hooks/new?from=forcePush`);
  await page.locator(".cm-content").nth(1).waitFor();
  await shot("new-hook");
  const fresh = await (await rig.person()).newPage();
  await fresh.goto(gateway.url);
  await fresh.locator("input[name=token]").waitFor();
  await shot("sign-in", fresh);
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

test.runIf(wanted)("pictures of what owners see", async () => {
  const rig = await Rig.start();
  const gateway = await Gateway.start({
    replies: [],
    env: { PINTLE_EDITION: "standard", PINTLE_ENCRYPTION_KEY: "ab".repeat(32), HOOKS_SECRET: `whsec_${Buffer.alloc(24, 1).toString("base64")}` },
    config: '[[gateway.webhooks]]\nurl = "https://chat.example.org/pintle"\nevents = ["approval.created", "breaker.tripped"]\nsecret_env = "HOOKS_SECRET"\n',
  });
  const page = await signedIn(await rig.person({ viewport: { width: 1280, height: 760 } }), gateway, "/settings/tenants", "system");
  await done(page, "system", "tenants.create", { slug: "acme", name: "Acme" });
  await done(page, "system", "tenants.create", { slug: "research", name: "Research" });
  await page.reload();
  await page.locator("tr[data-name]").nth(2).waitFor();
  await page.screenshot({ path: `${FOLDER}/settings-tenants.png` });
  await page.getByRole("link", { name: "Webhooks" }).click();
  await page.getByText("https://chat.example.org/pintle").waitFor();
  await page.screenshot({ path: `${FOLDER}/settings-webhooks.png` });
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

test.runIf(wanted)("pictures of the sketches", async () => {
  const rig = await Rig.start();
  const context = await rig.person();
  // They are files, whatever else is tried out.
  await context.unrouteAll();
  const page = await context.newPage();
  for (const file of readdirSync(SKETCHES).filter((name) => name.endsWith(".html"))) {
    const name = file.slice(0, -".html".length);
    await page.setViewportSize(PHONES[name] ?? { width: 1280, height: 760 });
    await page.goto(`file://${SKETCHES}/${file}`);
    await page.screenshot({ path: `${SKETCHES}/${name}.png` });
  }
  await rig.close();
  expect(rig.complaints).toEqual([]);
});
