import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import type { BrowserContext, Locator, Page } from "playwright-core";
import { expect, vi } from "vitest";

import { type Gateway, TOKEN } from "./rig.ts";

/** The roles, from the one that may least. */
export const ROLES = ["viewer", "operator", "admin", "owner"] as const;
export type Role = (typeof ROLES)[number];

/** Who has a role in these journeys. Without a list of owners `system` is one. */
export const userOf = (role: Role): string => (role === "owner" ? "system" : `a-${role}`);

export interface Answer {
  readonly ok: boolean;
  readonly payload?: Record<string, unknown>;
  readonly error?: { readonly code: string; readonly message: string };
}

/** Asks the server over a socket of its own, from within a page, as `user` with the gateway token or with a key. */
export async function ask(page: Page, user: string, method: string, params: object, token = TOKEN, tenant = "default"): Promise<Answer> {
  return page.evaluate(
    async ([who, called, given, secret, where]) => {
      const socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws`);
      const call = (id: string, name: string, said: unknown): Promise<Answer> =>
        new Promise((done) => {
          socket.addEventListener("message", (message) => {
            const frame = JSON.parse(String(message.data)) as Answer & { id?: string };
            if (frame.id === id) done(frame);
          });
          socket.send(JSON.stringify({ type: "req", id, method: name, params: said }));
        });
      await new Promise((open) => socket.addEventListener("open", open));
      const welcome = await call("1", "connect", { token: secret, user_id: who, ...(where === "default" ? {} : { tenant_hint: where }) });
      const answer = welcome.ok ? await call("2", called, given) : welcome;
      socket.close();
      return answer;
    },
    [user, method, params, token, tenant] as const,
  );
}

/** The same; it has to be done. */
export async function done(page: Page, user: string, method: string, params: object): Promise<Record<string, unknown>> {
  const answer = await ask(page, user, method, params);
  if (!answer.ok) {
    throw new Error(`${method}: ${answer.error?.code} ${answer.error?.message}`);
  }
  return answer.payload ?? {};
}

/** Says something after which a call waits for a person, and returns the id of the approval. */
export async function parks(page: Page, user: string, message: string, name: string): Promise<string> {
  // It is answered when somebody decides, or never.
  void ask(page, user, "chat.send", { message, agentId: "main", sessionKey: `agent:main:ws:direct:${name}` }).catch(() => undefined);
  return vi.waitFor(
    async () => {
      const { approvals } = (await done(page, user, "approvals.list", {})) as { approvals: { id: string; session_id: string }[] };
      const found = approvals.find(({ session_id }) => session_id.endsWith(`:${user}:${name}`));
      expect(found).toBeDefined();
      return found?.id ?? "";
    },
    { timeout: 15_000 },
  );
}

/** A page of the server where nobody is signed in. */
export async function outside(context: BrowserContext, gateway: Gateway): Promise<Page> {
  const page = await context.newPage();
  await page.goto(gateway.url);
  await page.locator("input[name=token]").waitFor();
  return page;
}

/** Goes to a path within the page, as a link does it: nothing is loaded anew. */
export async function go(page: Page, path: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState({}, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, path);
}

const AXE = readFileSync(resolve(import.meta.dirname, "../node_modules/axe-core/axe.min.js"), "utf8");

interface Finding {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly target: unknown }[];
}

/** What axe finds, and what makes the page scroll sideways. */
export async function findings(page: Page): Promise<unknown[]> {
  // As an extension would: the policy of the page forbids scripts of others.
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { violations } = await (window as unknown as { axe: { run: (options: object) => Promise<{ violations: Finding[] }> } }).axe.run({ resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html, target }) => `${String(target)} ${html.slice(0, 200)}`) }));
  });
  return [...found, ...(await sideways(page))];
}

/** What stands further right than the page is wide. */
export async function sideways(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    if (document.documentElement.scrollWidth <= innerWidth) {
      return [];
    }
    const wide = [...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1);
    return [`scrolls sideways: ${wide.slice(0, 3).map((one) => `${one.tagName} ${one.className} ${(one.textContent ?? "").slice(0, 60)}`).join(" | ")}`];
  });
}

/** Texts that strangers would write where they can. */
export const HOSTILE = `"><img src=x onerror="window.__ran=1"><script>window.__ran=1</script>{{7*7}}\u202Eevil ${"W".repeat(120)}`;

/** The same as a new name, in which nothing may be hidden. */
export const HOSTILE_NAME = HOSTILE.replace("\u202E", "");

/** An editor for code; a plain field stands there until it is loaded. */
export const editor = (page: Page, label: string): Locator => page.locator(`.cm-content[aria-label=${JSON.stringify(label)}]`);

/** Types over everything that an editor holds. */
export async function write(page: Page, label: string, text: string): Promise<void> {
  await editor(page, label).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
}
