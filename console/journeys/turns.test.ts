import { readFileSync } from "node:fs";

import type { Page } from "playwright-core";
import { afterEach, beforeEach, expect, test } from "vitest";

import { DONE, Gateway, LISTS, type Reply, Rig, rule, say, scripted, type Setting, signedIn } from "./rig.ts";

const PUSH: Reply = { tool_calls: [{ name: "exec", arguments: { command: "git push --force origin main" } }] };
const WHY = "forced pushes are done by people";
const NO_FORCE = scripted("no-force-push", "^exec$", { decision: "block", reason: WHY });
const OTHER = scripted("write-guard", "^write_file$", { decision: "allow" }, { priority: 50 });
const AGENT = 'tools = ["exec", "list_dir"]\n';

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

/** A gateway with two rules, and a turn in which one of them refused a push. */
async function refused(setting: Partial<Setting> = {}): Promise<Page> {
  gateway = await Gateway.start({ replies: [PUSH, DONE], agent: AGENT, ...setting });
  const page = await signedIn(await rig.person(), gateway, "/chat", "anna");
  await rule(page, NO_FORCE);
  await rule(page, OTHER);
  await say(page, "push my branch");
  return page;
}

const answer = (page: Page): Promise<string> => page.getByTestId("answer").innerText();

test("why something was blocked is one click from the conversation, and all of it is there", async () => {
  const page = await refused();
  await page.locator("[data-kind=call]").getByRole("link", { name: "Open the turn" }).click();
  await page.getByRole("tree").waitFor();
  await expect.poll(() => answer(page)).toBe(`exec was refused by no-force-push: ${WHY}.`);
  const detail = page.getByTestId("detail");
  await expect.poll(() => detail.innerText()).toContain(WHY);
  await expect.poll(() => detail.innerText()).toContain("git push --force origin main");
  // Hooks that did not run are one line; unfolded it says with what they were compared.
  const folded = page.getByRole("treeitem").filter({ hasText: /hooks? did not run/ }).first();
  await folded.click();
  await expect.poll(() => detail.innerText()).toContain("write-guard");
  await expect.poll(() => detail.innerText()).toMatch(/write_file.* does not match exec/);
  await folded.click();
  await page.getByRole("treeitem").filter({ hasText: "write-guard" }).first().click();
  await expect.poll(() => detail.innerText()).toMatch(/Pattern\s+\S*write_file/);
  // The address leads to the same row.
  const there = await (await rig.person()).newPage();
  await page.reload();
  await page.getByTestId("detail").getByText("Compared with").waitFor();
  await there.close();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export as JSON" }).click()]);
  const kept = JSON.parse(readFileSync(await download.path(), "utf8")) as { turn: { spans: unknown[] } };
  expect(kept.turn.spans.length).toBeGreaterThan(3);
});

test("what a command wrote is in its row for who may read it, and nowhere before they ask", async () => {
  gateway = await Gateway.start({ replies: [LISTS, DONE], agent: AGENT });
  const page = await signedIn(await rig.person(), gateway, "/chat", "anna");
  const command = "echo '{}'; for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo \"<b>looked $n</b>\" >&2; done";
  await rule(page, { name: "talks", event: "pre_tool_use", handler_type: "command", scope: "tenant", matcher: "^list_dir$", config: { command } });
  await say(page, "look around");
  await page.locator("details[data-turn] summary").click();
  await page.locator("details[data-turn]").getByRole("link", { name: "Open the turn" }).click();
  await page.getByRole("treeitem").filter({ hasText: "talks" }).first().click();
  const detail = page.getByTestId("detail");
  await detail.getByRole("button", { name: "Show what it wrote" }).waitFor();
  expect(await page.content()).not.toContain("looked 1");
  await detail.getByRole("button", { name: "Show what it wrote" }).click();
  const wrote = page.getByTestId("wrote");
  await wrote.getByRole("region", { name: "stdout" }).waitFor();
  const stderr = wrote.getByRole("region", { name: "stderr" });
  expect((await stderr.innerText()).split("\n").map((line) => line.trim())).toEqual(Array.from({ length: 8 }, (_, at) => `<b>looked ${at + 1}</b>`));
  await wrote.getByRole("button", { name: "Show 4 more lines" }).click();
  await expect.poll(() => stderr.innerText()).toContain("<b>looked 12</b>");
});

test("a checkpoint opens as a test, and its line says the same in a terminal", async () => {
  const page = await refused();
  await page.locator("[data-kind=call]").getByRole("link", { name: "Open the turn" }).click();
  await page.getByRole("button", { name: "Open as test" }).click();
  const line = await page.getByRole("dialog").getByRole("region", { name: "In a terminal" }).innerText();
  expect(line).toBe(`pintle hooks test no-force-push --event pre_tool_use --tool exec --input '{"command":"git push --force origin main"}'`);
  expect(gateway.terminal(`${line}; true`)).toContain(WHY);
  // That it is copied is said.
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText: () => Promise.resolve() } }));
  await page.getByRole("button", { name: "Copy the line" }).click();
  await page.getByRole("dialog").getByRole("status").getByText("Copied.").waitFor();
});

test("turns are found by what happened in them, and the address keeps it", async () => {
  const page = await refused({ replies: [PUSH, DONE, LISTS, DONE] });
  await say(page, "look around");
  await page.getByRole("link", { name: "Turns", exact: true }).first().click();
  await page.getByRole("listitem").nth(1).waitFor();
  const rows = page.locator("[data-row]");
  await expect.poll(() => rows.count()).toBe(2);
  const only = async (set: () => Promise<unknown>, text: string, part: string): Promise<void> => {
    await set();
    await expect.poll(() => rows.allInnerTexts().then((all) => all.map((one) => one.includes(text)))).toEqual([true]);
    await expect.poll(() => page.url()).toContain(part);
  };
  await only(() => page.getByLabel("Decision").selectOption("blocked"), "push my branch", "decision=blocked");
  await only(() => page.getByLabel("Decision").selectOption("allowed"), "look around", "decision=allowed");
  await page.getByLabel("Decision").selectOption("");
  await only(() => page.getByLabel("Tool", { exact: true }).fill("list_dir"), "look around", "tool=list_dir");
  await page.getByLabel("Tool", { exact: true }).fill("");
  await only(() => page.getByLabel("Search in reasons").fill("DONE BY people"), "push my branch", "q=DONE");
  await page.reload();
  await expect.poll(() => rows.count()).toBe(1);
  await page.getByLabel("Search in reasons").fill("nothing has this");
  await page.getByText("No turn fits these filters").waitFor();
  await page.goto(`${gateway.url}/turns/0193a5b0-7000-7000-8000-00000000dead`);
  await page.getByText("There is no such turn").waitFor();
});

test("a refused call is understood and let through once in four clicks", async () => {
  const page = await refused({ replies: [PUSH, DONE, PUSH, DONE, PUSH, DONE] });
  await page.getByRole("link", { name: "Overview", exact: true }).click();
  await page.getByText("Recently blocked").waitFor();
  await page.locator("main [data-row]").first().click();
  await page.getByRole("button", { name: "Let it through once…" }).click();
  await page.getByRole("button", { name: "Ask, and try again" }).click();
  // The message and what was refused before stand there, and the call that waits stands once; also for whoever comes later.
  for (const comes of ["now", "later"]) {
    if (comes === "later") {
      await page.reload();
    }
    await page.getByRole("button", { name: "Approve once" }).waitFor();
    await page.getByText("in place of no-force-push: an exception made by anna").first().waitFor();
    await page.locator("[data-kind=asked]").getByText("A person will be asked").waitFor();
    await expect.poll(() => page.locator("[data-kind=call]").allInnerTexts()).toEqual([expect.stringContaining(WHY)]);
    await page.getByRole("status").getByText("A call waits for a person.").waitFor();
  }
  await page.getByRole("button", { name: "Approve once" }).click();
  await page.getByText("All done.").nth(1).waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  const runs = page.locator("[data-kind=call]");
  await expect.poll(() => runs.last().innerText()).not.toContain(WHY);
  await runs.last().getByTestId("answered").getByText("by anna").waitFor();
  // Once: the same call is asked about again, and another one is refused as before.
  await page.getByLabel("Message").fill("and again");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Approve once" }).waitFor();
});

test("a turn is read with keys alone", async () => {
  const page = await refused();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").waitFor();
  await page.keyboard.type("turns");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Turns" }).waitFor();
  await page.locator("[data-row]").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  const tree = page.getByRole("tree");
  await tree.waitFor();
  await tree.focus();
  await page.keyboard.press("Home");
  const chosen = page.locator("[aria-selected=true]");
  await expect.poll(() => chosen.innerText()).toMatch(/Round 1|session_start|user_prompt_submit|before_/);
  const rows = await page.getByRole("treeitem").count();
  await page.getByRole("treeitem").filter({ hasText: "Round 1" }).click();
  await tree.focus();
  await page.keyboard.press("ArrowLeft");
  await expect.poll(() => page.getByRole("treeitem").count()).toBeLessThan(rows);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("j");
  await expect.poll(() => page.locator("[aria-selected=true]").getAttribute("aria-level")).toBe("2");
  await expect.poll(() => page.url()).toContain("row=");
});

test("the overview says what stands well, and each number leads to its list", async () => {
  const page = await refused();
  await page.getByRole("link", { name: "Overview", exact: true }).click();
  const tiles = page.getByTestId("tiles");
  await tiles.getByRole("link", { name: /blocked/ }).waitFor();
  await expect.poll(() => tiles.getByRole("link", { name: /blocked/ }).innerText()).toMatch(/^1\s/);
  // Live, and in its place, however far the page is scrolled.
  const place = () => tiles.evaluate((it: HTMLElement) => [it.offsetLeft, it.offsetTop, it.offsetWidth, it.offsetHeight]);
  const before = await place();
  const other = await signedIn(await rig.person(), gateway, "/chat", "ben");
  await rule(other, scripted("unsure", "^list_dir$", { decision: "ask", reason: "who knows" }));
  // A row that comes while somebody reads waits until they want it: of the rule that nobody asked yet, and of its change.
  const more = page.getByRole("button", { name: "Show 1 new" });
  await expect.poll(() => more.count(), { timeout: 30_000 }).toBe(2);
  expect(await page.getByText("unsure").count()).toBe(0);
  await more.first().click();
  await expect.poll(() => more.count()).toBe(1);
  await more.click();
  await expect.poll(() => page.getByText("unsure").count()).toBe(2);
  expect(await place()).toEqual(before);
  await tiles.getByRole("link", { name: /blocked/ }).click();
  await page.getByRole("heading", { name: "Turns" }).waitFor();
  await page.locator("[data-row]").filter({ hasText: "push my branch" }).waitFor();
  await page.goBack();
  await page.getByText("Most blocks").waitFor();
  // What is counted there are runs: the way to the turns stands beside it.
  await page.locator("main li").filter({ hasText: /no-force-push.*1 of 1/ }).getByRole("link", { name: "Turns with no-force-push" }).click();
  await expect.poll(() => page.url()).toContain("hook=no-force-push");
  await page.locator("[data-row]").filter({ hasText: "push my branch" }).waitFor();
});

test("hostile texts run nothing and overflow nothing, on a telephone", async () => {
  const hostile = `<img src=x onerror="window.hit=1"><script>window.hit=1</script> [l](javascript:window.hit=1) ${"w".repeat(2000)}`;
  gateway = await Gateway.start({ replies: [{ tool_calls: [{ name: "list_dir", arguments: { path: hostile } }] }, { text: hostile }], agent: AGENT });
  const context = await rig.person({ viewport: { width: 360, height: 740 } });
  const page = await signedIn(context, gateway, "/chat", "anna");
  await rule(page, scripted(hostile.slice(0, 250), "^list_dir$", { decision: "block", reason: hostile.slice(0, 1500) }));
  await page.getByRole("button", { name: "New" }).click();
  await page.getByLabel("Message").fill(hostile);
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("[data-kind=answer]").waitFor();
  const fits = async (): Promise<void> => {
    expect(await page.evaluate(() => [document.documentElement.scrollWidth <= innerWidth, (window as { hit?: number }).hit ?? 0])).toEqual([true, 0]);
  };
  await page.getByRole("link", { name: "Overview", exact: true }).click();
  await page.getByText("Recently blocked").waitFor();
  await fits();
  await page.getByRole("link", { name: "Turns", exact: true }).click();
  await page.locator("[data-row]").first().waitFor();
  await fits();
  await page.locator("[data-row]").first().click();
  await page.getByTestId("detail").waitFor();
  await fits();
  for (const row of await page.getByRole("treeitem").all()) {
    await row.click();
    await fits();
  }
});
