import { execFileSync } from "node:child_process";
import { join } from "node:path";

import type { BrowserContext, Page } from "playwright-core";
import { expect, vi } from "vitest";

import { done } from "./people.ts";
import type { Gateway } from "./rig.ts";

/** How often something is measured: the median counts. */
const RUNS = 3;

/** What a task took: by the clock, and on the processor. Where a machine is busy with others, only the second is the page's. */
export interface Task {
  readonly clockMs: number;
  readonly workMs: number;
}

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

const MICROS = 1_000;
const MILLIS = 1_000;

/** The tasks of a page's main thread while `during` goes on, the longest first. */
export async function tasks(page: Page, during: () => Promise<unknown>): Promise<readonly Task[]> {
  return tasksOf(await traced(page, during)).sort((one, two) => two.workMs - one.workMs);
}

/** What a page worked on its main thread until it set the mark `name`, in milliseconds of a processor. */
export async function workUntil(page: Page, name: string, during: () => Promise<unknown>): Promise<number> {
  const events = await traced(page, during);
  const mark = events.find((event) => event.name === name);
  // A browser has more than this page: only its own process counts.
  return tasksOf(events.filter((event) => event.pid === mark?.pid && (event.ph === "M" || event.ts <= mark.ts))).reduce((sum, { workMs }) => sum + workMs, 0);
}

function tasksOf(events: readonly TraceEvent[]): Task[] {
  const main = new Set(events.filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`));
  const all = events.filter(({ name, ph, pid, tid }) => ph === "X" && name.endsWith("RunTask") && main.has(`${pid} ${tid}`));
  return all.map(({ dur, tdur }) => ({ clockMs: (dur ?? 0) / MICROS, workMs: (tdur ?? dur ?? 0) / MICROS }));
}

async function traced(page: Page, during: () => Promise<unknown>): Promise<readonly TraceEvent[]> {
  const session = await page.context().newCDPSession(page);
  const events: TraceEvent[] = [];
  const take = ({ value }: { value: unknown[] }): void => void events.push(...(value as TraceEvent[]));
  session.on("Tracing.dataCollected", take);
  await session.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { recordMode: "recordAsMuchAsPossible", includedCategories: ["toplevel", "blink.user_timing", "__metadata"], excludedCategories: ["*"] } });
  await during();
  const ended = new Promise((done) => session.once("Tracing.tracingComplete", done));
  await session.send("Tracing.end");
  await ended;
  await session.detach();
  return events;
}

export const median = (all: readonly number[]): number => [...all].sort((one, two) => one - two)[Math.floor(all.length / 2)] ?? NaN;

const list = (all: readonly number[]): string => all.map((ms) => Math.round(ms)).join(", ");

/** Measures the longest task three times, says what came of it, and holds the median to the limit. */
export async function fluid(name: string, limitMs: number, once: () => Promise<readonly Task[]>): Promise<void> {
  const longest: Task[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    longest.push((await once())[0] ?? { clockMs: 0, workMs: 0 });
  }
  const work = longest.map(({ workMs }) => workMs);
  process.stdout.write(`${name}: longest task ${list(work)} ms of work (${list(longest.map(({ clockMs }) => clockMs))} ms by the clock), at most ${limitMs}\n`);
  expect(median(work)).toBeLessThanOrEqual(limitMs);
  if (process.env["PINTLE_LONG"] === "1") {
    // By the clock a task also takes what others do on this machine: held where somebody takes their time for it.
    expect(median(longest.map(({ clockMs }) => clockMs))).toBeLessThanOrEqual(limitMs);
  }
}

/** Executions as a page hears of them, `perSecond` for so many seconds. */
export type Pour = (perSecond: number, seconds: number) => Promise<void>;

/** Lets the pages of somebody hear of executions at exactly some rate, whatever the machine can do beside it: each is a copy
 * of one that the server told them of, with an id of its own. What else comes is numbered anew, so that nothing is missed. */
export async function poured(context: BrowserContext): Promise<Pour> {
  let [seq, told, send]: [number, Record<string, unknown> | undefined, ((text: string) => void) | undefined] = [0, undefined, undefined];
  await context.routeWebSocket(/\/ws$/, (page) => {
    seq = 0;
    send = (text) => page.send(text);
    page.connectToServer().onMessage((message) => {
      const text = String(message);
      if (!text.startsWith('{"type":"event"')) {
        page.send(text);
        return;
      }
      const frame = JSON.parse(text) as { event: string; seq: number; payload: Record<string, unknown> };
      if (frame.event === "hooks.execution") {
        told = frame.payload;
      }
      seq += 1;
      page.send(JSON.stringify({ ...frame, seq }));
    });
  });
  return async (perSecond, seconds) => {
    await vi.waitFor(() => expect(told).toBeDefined(), { timeout: 15_000 });
    const [began, all] = [Date.now(), perSecond * seconds];
    for (let sent = 0; sent < all; ) {
      await new Promise((again) => setTimeout(again, MILLIS / 50));
      for (const due = Math.min(all, Math.floor(((Date.now() - began) * perSecond) / MILLIS)); sent < due; sent += 1) {
        seq += 1;
        send?.(JSON.stringify({ type: "event", event: "hooks.execution", payload: { ...told, id: crypto.randomUUID(), created_at: new Date().toISOString() }, seq }));
      }
    }
  };
}

/** So many people take turns in saying something: each may say 20 things a minute. */
const WORKERS = 100;
let turns = 0;

/** Lets somebody's hooks run, turn after turn, for so many seconds. */
export async function busy(page: Page, seconds: number): Promise<void> {
  for (const end = Date.now() + seconds * MILLIS; Date.now() < end; ) {
    turns += 1;
    await done(page, `worker-${turns % WORKERS}`, "chat.send", { message: "look around", agentId: "main", sessionKey: `agent:main:ws:direct:${crypto.randomUUID()}` });
  }
}

/** Repeats the newest executions of a gateway until there are `count`, while it is down: each an hour and more before the first one. */
export function repeatExecutions(gateway: Gateway, count: number): void {
  const script = `
import sqlite3, sys, uuid, datetime
db = sqlite3.connect(sys.argv[1])
columns = [row[1] for row in db.execute("PRAGMA table_info(hook_executions)")]
known = [list(row) for row in db.execute("SELECT * FROM hook_executions")]
first = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
def again(at):
    row = known[at % len(known)][:]
    row[columns.index("id")] = str(uuid.uuid4())
    row[columns.index("dedup_key")] = None
    moment = first - datetime.timedelta(seconds=at)
    row[columns.index("created_at")] = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return row
places = ",".join("?" * len(columns))
db.executemany(f"INSERT INTO hook_executions VALUES ({places})", (again(at) for at in range(int(sys.argv[2]) - len(known))))
db.commit()
`;
  execFileSync("python3", ["-c", script, join(gateway.root, "data/pintle/pintle.db"), String(count)]);
}
