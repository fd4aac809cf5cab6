// Pipes recorded frames into the guard and checks its replies. Run it with: node --test test_guard.mjs

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

/** What the guard answers to `frames`, by id. It has to end when its input ends. */
function replies(frames) {
  const guard = spawnSync(process.execPath, [here("guard.mjs")], { input: frames, encoding: "utf8", timeout: 30_000 });
  assert.equal(guard.status, 0, guard.stderr);
  const lines = guard.stdout.split("\n").filter((line) => line !== "");
  return new Map(lines.map((line) => JSON.parse(line)).map((reply) => [reply.id, reply]));
}

/** A frame that asks about a call of `exec`. */
function call(id, args) {
  const params = { tool: "exec", arguments: args, tool_call_id: "c1", raw_tool: "exec" };
  return JSON.stringify({ jsonrpc: "2.0", id, method: "hook.before_tool", params }) + "\n";
}

test("recorded frames", () => {
  const got = replies(readFileSync(here("frames.jsonl"), "utf8"));
  assert.deepEqual([...got.keys()], [1, 2, 3, 4, 5]);
  assert.equal(got.get(1).result.ok, true);
  assert.deepEqual(got.get(2).result, { action: "deny_tool", reason: "forced pushes are done by people" });
  assert.deepEqual(got.get(3).result, {});
  assert.deepEqual(got.get(4).result, {});
  assert.equal(got.get(5).error.code, -32601);
});

test("more calls", () => {
  const refused = ["git push -f", "git -C a push origin --force", "git push origin +main", "true; git push --force"];
  const passed = ["git push", "git push origin fix-force", "ls -f", ""];
  const all = [...refused, ...passed];
  const frames = all.map((command, at) => call(at + 1, { command })).join("");
  const got = replies("no JSON\n" + frames + call(99, {}));
  all.forEach((command, at) => assert.equal("action" in got.get(at + 1).result, refused.includes(command), command));
  assert.deepEqual(got.get(99).result, {});
});
