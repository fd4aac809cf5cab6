import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";

import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page, type Route } from "playwright-core";

/** The built program and the browser of the system. */
export const PINTLE = process.env["PINTLE_BIN"] ?? resolve(import.meta.dirname, "../../target/debug/pintle");
const CHROMIUM = process.env["PINTLE_CHROMIUM"] ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync) ?? "chromium";

/** With `PINTLE_DIST=1` pages and assets come from `console/dist`, so a page is tried without building the program. */
const DIST = process.env["PINTLE_DIST"] === "1" ? resolve(import.meta.dirname, "../dist") : undefined;
const KINDS: Readonly<Record<string, string>> = { js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

/** Answers for the server, with what was built last; a page has the headers of the server, its policy among them. */
async function fromDist(route: Route, dist: string): Promise<void> {
  const request = route.request();
  const { origin, pathname } = new URL(request.url());
  if (pathname.startsWith("/assets/") && existsSync(dist + pathname)) {
    await route.fulfill({ contentType: KINDS[pathname.split(".").pop() ?? ""] ?? "application/octet-stream", body: readFileSync(dist + pathname) });
  } else if (request.resourceType() === "document" && !pathname.startsWith("/assets/")) {
    const answer = await route.fetch({ url: `${origin}/` });
    const headers = Object.fromEntries(Object.entries(answer.headers()).filter(([name]) => !["content-encoding", "content-length"].includes(name)));
    await route.fulfill({ status: 200, headers, body: readFileSync(`${dist}/index.html`) });
  } else {
    await route.continue();
  }
}

export const TOKEN = "a-token-of-this-journey";

/** What a browser says of answers that journeys ask for: a refusal, what is not there, and a server that is gone. Nothing
 * of a policy begins so. */
const EXPECTED = [
  /^Failed to load resource: the server responded with a status of (401|404|415) /,
  /^Failed to load resource: net::ERR_CONNECTION_/,
  /^WebSocket connection to '[^']*' failed: /,
];

/** Whether a message of a browser is a complaint about a page. */
export const isComplaint = (type: string, text: string): boolean => type === "error" && !EXPECTED.some((known) => known.test(text));

/** What the scripted model says, one after the other. */
export interface Reply {
  readonly text?: string | readonly string[];
  readonly reasoning?: string;
  readonly tool_calls?: readonly { readonly name: string; readonly arguments: object }[];
  readonly delay_ms?: number;
}

export interface Setting {
  readonly replies: readonly Reply[];
  /** More of `pintle.toml`, behind the agent. */
  readonly agent?: string;
  /** More of `pintle.toml`, at its end. */
  readonly config?: string;
  readonly env?: Record<string, string>;
  /** Files beside `pintle.toml`, by their paths. */
  readonly files?: Record<string, string>;
  /** What the scripted model `judge` says, which hooks ask: it has a script of its own. */
  readonly judge?: readonly Reply[];
}

/** A gateway that runs until it is closed. */
export class Gateway {
  private constructor(
    private readonly child: ChildProcess,
    readonly root: string,
    readonly url: string,
  ) {}

  static async start(setting: Setting, token = true): Promise<Gateway> {
    const root = mkdtempSync(join(tmpdir(), "pintle-console-"));
    for (const folder of ["home", "config/pintle", "data", "work"]) {
      mkdirSync(join(root, folder), { recursive: true });
    }
    for (const [path, text] of Object.entries(setting.files ?? {})) {
      mkdirSync(dirname(join(root, "config/pintle", path)), { recursive: true });
      writeFileSync(join(root, "config/pintle", path), text);
    }
    writeFileSync(join(root, "config/pintle/replies.json"), JSON.stringify({ replies: setting.replies }));
    writeFileSync(join(root, "config/pintle/judge.json"), JSON.stringify({ replies: setting.judge ?? [] }));
    const judge = setting.judge === undefined ? "" : '[providers.judge]\nkind = "scripted"\nscript = "judge.json"\n\n[agent_hooks.prompt]\nprovider = "judge"\nmodel = "test"\n\n';
    writeFileSync(
      join(root, "config/pintle/pintle.toml"),
      `[providers.scripted]\nkind = "scripted"\nscript = "replies.json"\n\n[agents.main]\nmodel = "scripted/test"\ndefault = true\n${setting.agent ?? ""}\n[gateway]\n${token ? 'token_env = "PINTLE_JOURNEY_TOKEN"\n' : ""}drain_delay_s = 0\n\n${judge}${setting.config ?? ""}\n`,
    );
    return Gateway.at(root, "127.0.0.1:0", setting.env ?? {});
  }

  private static envOf(root: string): Record<string, string> {
    return {
      PATH: `${dirname(PINTLE)}:${process.env["PATH"] ?? ""}`,
      HOME: join(root, "home"),
      XDG_CONFIG_HOME: join(root, "config"),
      XDG_DATA_HOME: join(root, "data"),
      PINTLE_JOURNEY_TOKEN: TOKEN,
    };
  }

  /** What a command line of a shell says on the machine of the server. */
  terminal(line: string): string {
    return execFileSync("/bin/sh", ["-c", line], { cwd: join(this.root, "work"), env: Gateway.envOf(this.root), encoding: "utf8" });
  }

  private static async at(root: string, listen: string, more: Record<string, string>): Promise<Gateway> {
    const env = { ...Gateway.envOf(root), ...more };
    const child = spawn(PINTLE, ["serve", "--listen", listen], { cwd: join(root, "work"), env, stdio: ["ignore", "ignore", "pipe"] });
    const said: string[] = [];
    const url = await new Promise<string>((found, failed) => {
      child.once("exit", (code) => failed(new Error(`pintle ended with ${code}:\n${said.join("\n")}`)));
      child.once("error", failed);
      createInterface({ input: child.stderr as NonNullable<typeof child.stderr> }).on("line", (line) => {
        said.push(line);
        const at = /listening at (http:\/\/\S+)/.exec(line);
        if (at?.[1] !== undefined) {
          found(at[1]);
        }
      });
    });
    return new Gateway(child, root, url);
  }

  /** Kills it, and serves the same again at the same address. */
  async restart(meanwhile: () => Promise<void>): Promise<Gateway> {
    await this.end();
    await meanwhile();
    return Gateway.at(this.root, new URL(this.url).host, {});
  }

  private async end(): Promise<void> {
    const gone = new Promise((done) => this.child.once("exit", done));
    this.child.kill("SIGKILL");
    await gone;
  }

  async close(): Promise<void> {
    await this.end();
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** A browser with what it complained about. */
export class Rig {
  readonly complaints: string[] = [];
  private browser!: Browser;

  static async start(): Promise<Rig> {
    const rig = new Rig();
    rig.browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    });
    return rig;
  }

  /** Somebody with a browser of their own. Whatever a page complains about is noted: policies broken, scripts failed. */
  async person(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    const context = await this.browser.newContext({ locale: "en-US", viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(15_000);
    if (DIST !== undefined) {
      // A page that did not come from this machine asks whether it may talk to it.
      await context.grantPermissions(["local-network-access"]);
      await context.route("**", (route) => fromDist(route, DIST));
    }
    context.on("page", (page) => {
      page.on("pageerror", (error) => this.complaints.push(`${page.url()}: ${String(error)}`));
      page.on("console", (message) => {
        if (isComplaint(message.type(), message.text())) {
          this.complaints.push(`${page.url()}: ${message.text()}`);
        }
      });
    });
    return context;
  }

  async close(): Promise<void> {
    await this.browser.close();
  }
}

/** Opens a page and signs in there. */
export async function signedIn(context: BrowserContext, gateway: Gateway, path: string, user: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(gateway.url + path);
  await page.locator("input[name=token]").fill(TOKEN);
  await page.locator("input[name=user]").fill(user);
  await page.locator("button[type=submit]").click();
  await page.locator("nav").first().waitFor();
  return page;
}

/** Makes a rule over the socket of the page, as it stands in the record. */
export async function rule(page: Page, record: object, user = "anna"): Promise<string> {
  return page.evaluate(
    async ([made, who]) => {
      const socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws`);
      const ask = (id: string, method: string, params: unknown): Promise<{ payload: { hookId: string } }> =>
        new Promise((done) => {
          socket.addEventListener("message", (message) => {
            const frame = JSON.parse(String(message.data)) as { id?: string; payload: { hookId: string } };
            if (frame.id === id) done(frame);
          });
          socket.send(JSON.stringify({ type: "req", id, method, params }));
        });
      await new Promise((open) => socket.addEventListener("open", open));
      await ask("1", "connect", { token: "a-token-of-this-journey", user_id: who });
      const { payload } = await ask("2", "hooks.create", made);
      socket.close();
      return payload.hookId;
    },
    [record, user] as const,
  );
}

/** An HTTP endpoint that rules ask. */
export async function endpoint(answer: (event: Record<string, unknown>, request: IncomingMessage) => unknown): Promise<{ server: Server; url: string; port: number }> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(answer(JSON.parse(Buffer.concat(pieces).toString()) as Record<string, unknown>, request)));
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address() as AddressInfo;
  return { server, url: `http://127.0.0.1:${port}/check`, port };
}

/** What a process hook says that lets everything pass. */
export const YES = `while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\\([0-9]*\\).*/\\1/')
  printf '{"jsonrpc":"2.0","id":%s,"result":{"ok":true}}\\n' "$id"
done
`;

/** A call of a tool, and an answer. */
export const LISTS: Reply = { tool_calls: [{ name: "list_dir", arguments: { path: "." } }] };
export const DONE: Reply = { text: ["All ", "done."] };

/** A rule that answers `answer`, as it stands in the record. */
export const scripted = (name: string, matcher: string, answer: object, more: object = {}): object => ({
  name,
  event: "pre_tool_use",
  handler_type: "script",
  scope: "tenant",
  matcher,
  config: { source: `function handle() { return ${JSON.stringify(answer)}; }` },
  ...more,
});

/** Says something in a new conversation, and waits for the end of the turn. */
export async function say(page: Page, text: string): Promise<void> {
  await page.getByRole("link", { name: "Chat", exact: true }).click();
  // What is typed does not go into a conversation that is about to be left.
  await page.waitForURL(({ pathname }) => pathname === "/chat");
  await page.getByLabel("Message").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "New" }).click();
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("All done.").last().waitFor({ timeout: 120_000 });
  await page.getByRole("button", { name: "Send" }).waitFor();
}
