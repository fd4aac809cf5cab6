// A guard: sees every call of the tool `exec` before it runs, and refuses forced pushes.
//
// Each line on standard input is one JSON object, and each answer is one line on standard output.
// Print nothing else there; standard error is yours.

import { createInterface } from "node:readline";

// What must not happen. Change this, then the frames in test_guard.mjs.
const FORCED = /\bgit\b.*\bpush\b.*(\s--force\b|\s-f\b|\s\+\S)/s;

/** Rules on one call. `{}` lets it pass; `modify` and `respond` are possible, too. */
function beforeTool(params) {
  if (FORCED.test(String(params.arguments.command ?? ""))) {
    return { action: "deny_tool", reason: "forced pushes are done by people" };
  }
  return {};
}

// The tool stages come as a pair, so `after_tool` is asked as well; this guard has nothing to say there.
const ANSWERS = new Map([
  ["hook.hello", () => ({ ok: true, name: "guard" })],
  ["hook.before_tool", beforeTool],
  ["hook.after_tool", () => ({})],
]);

function answer({ id, method, params }) {
  const reply = { jsonrpc: "2.0", id };
  const ask = ANSWERS.get(method);
  if (!ask) {
    return { ...reply, error: { code: -32601, message: `unknown method ${method}` } };
  }
  try {
    return { ...reply, result: ask(params ?? {}) };
  } catch (error) {
    // The call is then refused, and the text says why.
    return { ...reply, error: { code: -32603, message: String(error) } };
  }
}

// The loop ends when the input ends.
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let message;
  try {
    message = JSON.parse(line);
  } catch (error) {
    console.error(`skipped a line: ${error}`);
    continue;
  }
  if (message?.id === undefined) {
    continue; // A notification: no answer is expected.
  }
  process.stdout.write(JSON.stringify(answer(message)) + "\n");
}
