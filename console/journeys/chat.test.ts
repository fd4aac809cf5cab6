import { readFileSync } from "node:fs";
import { deflateSync } from "node:zlib";

import type { Page } from "playwright-core";
import { afterEach, beforeEach, expect, test } from "vitest";

import { go } from "./people.ts";
import { DONE, Gateway, LISTS, Rig, rule, type Setting, signedIn, TOKEN, YES } from "./rig.ts";

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

async function talking(setting: Setting, width = 1280): Promise<Page> {
  gateway = await Gateway.start(setting);
  const page = await signedIn(await rig.person({ viewport: { width, height: 800 } }), gateway, "/chat", "anna");
  await page.getByRole("button", { name: "New" }).click();
  return page;
}

/** Sends what is in the field, and waits until the agent said `answer`. */
async function send(page: Page, answer: string): Promise<void> {
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.locator("[data-kind=answer]").getByText(answer).last().waitFor();
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
}

const crcs = Array.from({ length: 256 }, (_, n) => Array.from({ length: 8 }).reduce<number>((sum) => (sum & 1 ? 0xedb88320 ^ (sum >>> 1) : sum >>> 1), n));
function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const crc = ~body.reduce((sum, byte) => (crcs[(sum ^ byte) & 255] as number) ^ (sum >>> 8), ~0) >>> 0;
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc);
  return Buffer.concat([length, body, sum]);
}

/** A picture in one colour. */
function png(side: number, colour: readonly number[]): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const line = Buffer.from([0, ...Array.from({ length: side }, () => colour).flat()]);
  const data = deflateSync(Buffer.concat(Array.from({ length: side }, () => line)));
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk("IHDR", head), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}

test("an earlier message is edited and sent again, and what came after it leaves the conversation", async () => {
  const page = await talking({ replies: [{ text: "The first answer." }, { text: "The second answer." }, { text: "The answer to the edited one." }] });
  await page.getByLabel("Message").fill("a first question");
  await send(page, "The first answer.");
  await page.getByLabel("Message").fill("a second question");
  await send(page, "The second answer.");
  await page.getByRole("button", { name: "Edit and retry: a first question" }).click();
  await page.getByText("everything after it leaves the conversation").waitFor();
  await expect.poll(() => page.getByLabel("Message").inputValue()).toBe("a first question");
  // Somebody may think better of it.
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect.poll(() => page.getByLabel("Message").inputValue()).toBe("");
  await page.getByRole("button", { name: "Edit and retry: a first question" }).click();
  await page.getByLabel("Message").fill("a better question");
  await send(page, "The answer to the edited one.");
  const said = (): Promise<string[]> => page.locator("[data-kind=asked], [data-kind=answer]").allInnerTexts();
  await expect.poll(said).toEqual(["a better question", "The answer to the edited one."]);
  await page.reload();
  await expect.poll(said).toEqual(["a better question", "The answer to the edited one."]);
});

test("whoever opens a conversation later sees what was blocked in it, and comes to its turns", async () => {
  const page = await talking({ replies: [LISTS, { text: "So be it." }] });
  await rule(page, { name: "no-lists", event: "pre_tool_use", handler_type: "script", scope: "tenant", matcher: "^list_dir$", config: { source: 'function handle() { return { decision: "block", reason: "nobody looks" }; }' } });
  await page.getByLabel("Message").fill("look around");
  await send(page, "So be it.");
  await page.reload();
  const call = page.locator("[data-kind=call]");
  await call.locator("p").getByText("nobody looks").waitFor();
  await expect.poll(() => call.innerText()).toMatch(/blocked[^]*no-lists: nobody looks/);
  await page.getByText("What hooks did in this turn").click();
  await page.getByRole("link", { name: "no-lists" }).last().waitFor();
  await page.getByRole("link", { name: "Open the turn" }).first().click();
  await page.getByRole("tree").waitFor();
});

test("calls of the same id in two turns keep their own reasons, live and later", async () => {
  const lists = (path: string) => ({ tool_calls: [{ name: "list_dir", arguments: { path } }] });
  const page = await talking({ replies: [lists("one"), { text: "Not one." }, lists("two"), { text: "Not two." }] });
  await rule(page, { name: "no-lists", event: "pre_tool_use", handler_type: "script", scope: "tenant", matcher: "^list_dir$", config: { source: 'function handle(event) { return { decision: "block", reason: "nobody looks at `" + event.toolInput.path + "`" }; }' } });
  await page.getByLabel("Message").fill("look at one");
  await send(page, "Not one.");
  await page.getByLabel("Message").fill("look at two");
  await send(page, "Not two.");
  const reasons = (): Promise<string[]> => page.locator("[data-kind=call] > p").allInnerTexts();
  const own = [expect.stringMatching(/^no-lists: nobody looks at one /), expect.stringMatching(/^no-lists: nobody looks at two /)];
  await expect.poll(reasons).toEqual(own);
  await page.reload();
  await expect.poll(reasons).toEqual(own);
  // What stands between backticks is code.
  await page.locator("[data-kind=call] > p code").getByText("two").waitFor();
});

test("each turn has its own hooks beside it, those of the configuration too, also in a conversation that is read later", async () => {
  const config = '\n[hooks.processes.looks]\nenabled = true\ncommand = ["sh", "looks.sh"]\nintercept = ["before_tool"]\n';
  const page = await talking({ replies: [LISTS, { text: "One." }, { text: "Two." }], config, files: { "looks.sh": YES } });
  // The same words twice: a turn is not guessed by them.
  for (const answer of ["One.", "Two."]) {
    await page.getByLabel("Message").fill("look around");
    await send(page, answer);
  }
  await page.reload();
  await page.locator("[data-kind=answer]").getByText("Two.").waitFor();
  const turns = page.locator("[data-turn]");
  await expect.poll(() => turns.count()).toBe(2);
  await turns.first().locator("summary").click();
  // No rule ran in it: it was asked all the same.
  await turns.first().getByRole("link", { name: "looks" }).first().waitFor();
  await turns.last().locator("summary").click();
  await turns.last().getByText(/^No hook/).waitFor();
  await turns.first().getByRole("link", { name: "looks" }).first().click();
  await page.getByTestId("detail").getByRole("heading", { name: /looks/ }).waitFor();
});

test("what is typed stays while somebody looks elsewhere, after a session ended too, and goes once it was taken", async () => {
  const page = await talking({ replies: [{ text: "Taken." }] });
  const message = page.getByLabel("Message");
  await message.fill("half a sentence");
  const path = new URL(page.url()).pathname;
  await page.getByRole("link", { name: "Hooks", exact: true }).first().click();
  await page.getByRole("heading", { name: "Hooks" }).waitFor();
  await page.goBack();
  await expect.poll(() => message.inputValue()).toBe("half a sentence");
  // It is kept nowhere where others could read it.
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).not.toContain("half a sentence");
  await page.getByRole("button", { name: /anna/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.locator("input[name=token]").fill(TOKEN);
  await page.locator("input[name=user]").fill("anna");
  await page.locator("button[type=submit]").click();
  await page.locator("nav").first().waitFor();
  await go(page, path);
  await expect.poll(() => message.inputValue()).toBe("half a sentence");
  await send(page, "Taken.");
  await page.getByRole("link", { name: "Hooks", exact: true }).first().click();
  await page.goBack();
  await expect.poll(() => message.inputValue()).toBe("");
});

test("an edited message that a gate stops changes nothing", async () => {
  const page = await talking({ replies: [{ text: "The first answer." }] });
  await rule(page, { name: "no-secrets", event: "user_prompt_submit", handler_type: "script", scope: "tenant", config: { source: 'function handle(event) { return event.rawInput.includes("swordfish") ? { decision: "block", reason: "that is a secret" } : { decision: "allow" }; }' } });
  await page.getByLabel("Message").fill("a question");
  await send(page, "The first answer.");
  await page.getByRole("button", { name: /^Edit and retry/ }).click();
  await page.getByLabel("Message").fill("it is swordfish");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.locator("[data-kind=blocked]").getByText("that is a secret").waitFor();
  await page.reload();
  await page.locator("[data-kind=answer]").waitFor();
  await expect.poll(() => page.locator("[data-kind=asked], [data-kind=answer]").allInnerTexts()).toEqual(["a question", "The first answer."]);
});

test("a message is edited as somebody saw it, or not at all", async () => {
  const page = await talking({ replies: [{ text: "The first answer." }, { text: "The second answer." }] });
  await page.getByLabel("Message").fill("a question");
  await send(page, "The first answer.");
  await page.getByLabel("Message").fill("and another one");
  await send(page, "The second answer.");
  // Over the socket, as a page would that heard nothing of the second question.
  const refused = await page.evaluate(async () => {
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws`);
    const ask = (id: string, method: string, params: unknown): Promise<{ ok: boolean; error?: { message: string } }> =>
      new Promise((done) => {
        socket.addEventListener("message", (message) => {
          const frame = JSON.parse(String(message.data)) as { id?: string; ok: boolean };
          if (frame.id === id) done(frame);
        });
        socket.send(JSON.stringify({ type: "req", id, method, params }));
      });
    await new Promise((open) => socket.addEventListener("open", open));
    await ask("1", "connect", { token: "a-token-of-this-journey", user_id: "anna" });
    const sessionKey = decodeURIComponent(location.pathname.split("/chat/")[1] ?? "");
    const edited = await ask("2", "chat.send", { sessionKey, message: "too late", edits: { place: 0, of: 2 } });
    socket.close();
    return edited.error?.message;
  });
  expect(refused).toContain("the conversation went on meanwhile");
  await expect.poll(() => page.locator("[data-kind=asked]").allInnerTexts()).toEqual(["a question", "and another one"]);
});

test("whoever edits while the conversation goes on keeps what they typed, and is told", async () => {
  const page = await talking({ replies: [{ text: "The first answer." }, { text: "The second answer." }, { text: "The third answer." }] });
  await page.getByLabel("Message").fill("a question");
  await send(page, "The first answer.");
  await page.getByRole("button", { name: "Edit and retry: a question" }).click();
  await page.getByLabel("Message").fill("a better question");
  // The same person, at another screen.
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.getByLabel("Message").fill("and another one");
  await send(other, "The second answer.");
  await page.getByText("The second answer.").waitFor();
  await page.getByText("The conversation went on while you were editing").waitFor();
  await expect.poll(() => page.getByLabel("Message").inputValue()).toBe("a better question");
  await expect.poll(() => page.locator("[data-kind=asked]").allInnerTexts()).toEqual(["a question", "and another one"]);
  await send(page, "The third answer.");
  await expect.poll(() => page.locator("[data-kind=asked]").allInnerTexts()).toEqual(["a question", "and another one", "a better question"]);
});

test("files are attached, go with a message, come back with it, and what is not taken says why", async () => {
  const page = await talking({ replies: [DONE, { text: "Another answer." }] });
  const choose = page.locator("input[type=file]");
  const picture = png(40, [200, 30, 30]);
  await choose.setInputFiles([
    { name: "red.png", mimeType: "image/png", buffer: picture },
    { name: "notes.md", mimeType: "", buffer: Buffer.from("# notes\n") },
    { name: "page.html", mimeType: "text/html", buffer: Buffer.from("<!doctype html><script>1</script>") },
  ]);
  await expect.poll(() => page.locator("[data-attached=kept]").count()).toBe(2);
  await page.getByRole("alert").getByText('files of the type "text/html" are not taken').waitFor();
  await page.getByLabel("Message").fill("look at these");
  // What was not taken does not go along: somebody takes it away first.
  await expect.poll(() => page.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true);
  await page.getByRole("button", { name: "Remove page.html" }).click();
  await send(page, "All done.");
  const mine = page.locator("[data-kind=asked]");
  await mine.getByRole("img", { name: "Picture red.png" }).waitFor();
  await mine.getByText("notes.md").waitFor();
  await page.reload();
  await mine.getByRole("img", { name: "Picture red.png" }).waitFor();
  const drawn = (): Promise<number[]> => page.locator("canvas").evaluate((canvas) => [...((canvas as HTMLCanvasElement).getContext("2d")?.getImageData(5, 5, 1, 1).data ?? [])]);
  await expect.poll(drawn).toEqual([200, 30, 30, 255]);
  const [saved] = await Promise.all([page.waitForEvent("download"), mine.getByRole("button", { name: "Save red.png" }).click()]);
  expect(readFileSync(await saved.path())).toEqual(picture);
  // An edited message keeps its files.
  await page.getByRole("button", { name: /^Edit and retry/ }).click();
  await expect.poll(() => page.locator("[data-attached=kept]").count()).toBe(2);
  await page.getByRole("button", { name: "Remove notes.md" }).waitFor();
  await page.getByLabel("Message", { exact: true }).fill("look again");
  await send(page, "Another answer.");
  await mine.getByRole("img", { name: "Picture red.png" }).waitFor();
  await expect.poll(() => mine.allInnerTexts()).toHaveLength(1);
});

test("files are dropped and pasted, on a telephone too, and go with no message into a turn that runs", async () => {
  const page = await talking({ replies: [{ ...LISTS, delay_ms: 4_000 }, DONE] }, 360);
  const dropped = await page.evaluateHandle(() => {
    const all = new DataTransfer();
    all.items.add(new File(["one"], "one.txt", { type: "text/plain" }));
    return all;
  });
  await page.getByLabel("Message").dispatchEvent("drop", { dataTransfer: dropped });
  await expect.poll(() => page.locator("[data-attached=kept]").count()).toBe(1);
  await page.getByLabel("Message").evaluate((field) => {
    const all = new DataTransfer();
    all.items.add(new File(["two"], "two.txt", { type: "text/plain" }));
    field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: all, bubbles: true }));
  });
  await expect.poll(() => page.locator("[data-attached=kept]").count()).toBe(2);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
  await page.getByLabel("Message").fill("here");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await expect.poll(() => page.getByRole("button", { name: "Attach files" }).isDisabled()).toBe(true);
  await page.getByText("All done.").waitFor();
  await page.locator("[data-kind=asked]").getByText("two.txt").waitFor();
});
