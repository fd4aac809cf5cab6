// Written by `pintle guard install`. Each event asks the client of Pintle's guard; anything but an allow refuses.
const PROGRAM = "PROGRAM";
const ARGUMENTS = ["ARGUMENTS"];
// The client answers sooner; pi itself would wait for ever.
const DEADLINE_MS: number = "DEADLINE" as any;

// Whatever fails is an answer that denies: what a handler throws, pi may pass over.
async function ask(event: string, told: () => unknown): Promise<any> {
  try {
    const text = JSON.stringify(told());
    const { spawn } = await import("node:child_process");
    const words = ARGUMENTS.map((word) => (word === "EVENT" ? event : word));
    return await new Promise((resolve) => {
      const child = spawn(PROGRAM, words, { stdio: ["pipe", "pipe", "ignore"] });
      const late = setTimeout(() => {
        resolve(denied(new Error("it was too late")));
        child.kill("SIGKILL");
      }, DEADLINE_MS);
      late.unref();
      child.on("error", (error: unknown) => resolve(denied(error)));
      let said = "";
      child.stdout.setEncoding("utf8");
      child.stdout.on("data", (part: string) => (said += part));
      child.stdout.on("error", (error: unknown) => resolve(denied(error)));
      child.stdin.on("error", () => {});
      child.on("close", () => {
        clearTimeout(late);
        try {
          resolve(JSON.parse(said));
        } catch {
          resolve({ deny: "Pintle's guard did not answer, so this is refused." });
        }
      });
      child.stdin.end(text);
    });
  } catch (error) {
    return denied(error);
  }
}

function denied(error: unknown) {
  return { deny: `Pintle's guard could not be asked: ${error instanceof Error ? error.message : "something failed"}` };
}

const refusal = (answer: any) => (answer?.allow === true ? "" : answer?.deny || "refused by Pintle's guard");

function told(event: any, context: any) {
  const manager = context?.sessionManager;
  const sessionId = typeof manager?.getSessionId === "function" ? manager.getSessionId() : undefined;
  return { ...event, sessionId, cwd: context?.cwd ?? process.cwd() };
}

export default function (pi: any) {
  for (const name of ["session_start", "session_shutdown", "agent_end"]) {
    pi.on(name, async (event: any, context: any) => {
      await ask(name, () => told(name === "agent_end" ? { type: name } : event, context));
    });
  }
  pi.on("input", async (event: any, context: any) => {
    const answer = await ask("input", () => told(event, context));
    if (answer?.prompt) return { action: "transform", text: answer.prompt };
    if (refusal(answer)) return { action: "handled" };
    if (answer.context) return { action: "transform", text: `${event.text}\n\n${answer.context}` };
  });
  pi.on("tool_call", async (event: any, context: any) => {
    const answer = await ask("tool_call", () => told(event, context));
    const reason = refusal(answer);
    if (reason) return { block: true, reason };
    if (answer.args === undefined) return;
    for (const name of Object.keys(event.input)) if (!(name in answer.args)) delete event.input[name];
    Object.assign(event.input, answer.args);
  });
  pi.on("tool_result", async (event: any, context: any) => {
    const answer = await ask("tool_result", () => told(event, context));
    const text = refusal(answer) || answer.output;
    if (typeof text === "string") return { content: [{ type: "text", text }] };
  });
}
