import { type AddressInfo } from "node:net";
import { createServer, type Server } from "node:http";

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { done, go } from "./people.ts";
import { DONE, Gateway, type Reply, Rig, scripted, signedIn } from "./rig.ts";

const FIVE: Reply = { tool_calls: Array.from({ length: 5 }, (_, at) => ({ name: "list_dir", arguments: { path: `${at}` } })) };
const ONE: Reply = { tool_calls: [{ name: "list_dir", arguments: { path: "." } }] };

let rig: Rig;
let gateway: Gateway;
let page: Page;
/** Who is told of what happens, and what it answers. */
let receiver: Server;
let answers = 500;
const told: string[] = [];

beforeAll(async () => {
  rig = await Rig.start();
  receiver = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      told.push(Buffer.concat(pieces).toString());
      response.writeHead(answers).end();
    });
  });
  await new Promise<void>((ready) => receiver.listen(0, "127.0.0.1", ready));
  gateway = await Gateway.start({
    replies: [FIVE, DONE, ONE, DONE, FIVE, DONE],
    agent: 'tools = ["list_dir"]\n',
    env: { HOOKS_SECRET: `whsec_${Buffer.alloc(24, 1).toString("base64")}` },
    config: `[[gateway.webhooks]]\nurl = "http://127.0.0.1:${(receiver.address() as AddressInfo).port}/told"\nevents = ["breaker.tripped"]\nsecret_env = "HOOKS_SECRET"\n`,
  });
  page = await signedIn(await rig.person(), gateway, "/health", "system");
});
afterAll(async () => {
  receiver.close();
  await rig.close();
  await gateway.close();
  expect(rig.complaints).toEqual([]);
});

test("a breaker that tripped stands on Health with what it means, and is reset there", async () => {
  await done(page, "system", "hooks.create", scripted("trips", "^list_dir$", { decision: "block", reason: "no" }));
  await done(page, "system", "chat.send", { message: "look five times" });
  const main = page.getByRole("main");
  await main.getByRole("button", { name: "Reset" }).waitFor();
  await expect.poll(() => main.innerText()).toMatch(/trips\s+tripped/);
  await expect.poll(() => page.getByTestId("answer").innerText()).toContain("what it matches is refused");
  await main.getByRole("button", { name: "Reset" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await main.getByRole("button", { name: "Reset" }).waitFor({ state: "detached" });
  await expect.poll(() => page.getByTestId("answer").innerText()).not.toContain("what it matches is refused");
  // It acts again, and does not begin where it tripped.
  await done(page, "system", "chat.send", { message: "look once more" });
  const { executions } = (await done(page, "system", "hooks.history", { limit: 1 })) as { executions: { decision: string; hook_name: string }[] };
  expect(executions).toMatchObject([{ decision: "block", hook_name: "trips" }]);
});

test("what could not be told is told again when somebody says so", async () => {
  await go(page, "/settings/webhooks");
  const waiting = page.getByRole("table", { name: "Not delivered" });
  await waiting.getByText("breaker.tripped").waitFor();
  await expect.poll(() => told.length).toBeGreaterThan(0);
  await expect.poll(() => waiting.innerText()).toContain("500");
  const before = told.length;
  answers = 204;
  await waiting.getByRole("button", { name: /^Try again/ }).click();
  await expect.poll(() => told.length).toBeGreaterThan(before);
  expect(JSON.parse(told.at(-1) ?? "{}")).toMatchObject({ type: "breaker.tripped" });
  await expect.poll(async () => ((await done(page, "system", "webhooks.list", {})) as { deliveries: unknown[] }).deliveries).toEqual([]);
  await page.reload();
  await page.getByText("1 receiver has got everything").waitFor();
});

test("a rule for all tenants whose breaker opened in one is tripped there for owners, too", async () => {
  await done(page, "system", "hooks.create", scripted("for-all", "^list_dir$", { decision: "block", reason: "no" }, { scope: "global", priority: 500 }));
  await done(page, "system", "chat.send", { message: "look five times again" });
  await go(page, "/health");
  const main = page.getByRole("main");
  await expect.poll(() => main.innerText()).toMatch(/for-all\s+tripped/);
  await go(page, "/");
  await page.getByTestId("tiles").getByRole("link", { name: /^1\s*tripped$/ }).click();
  await page.getByRole("heading", { name: "Hooks" }).waitFor();
  await page.getByRole("link", { name: "for-all", exact: true }).click();
  await page.getByRole("heading", { name: "for-all" }).waitFor();
  await expect.poll(() => main.innerText()).toMatch(/for-all[\s\S]*tripped/);
  await main.getByRole("button", { name: "Reset" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
  await expect.poll(() => main.innerText()).toMatch(/for-all[\s\S]*armed/);
});
