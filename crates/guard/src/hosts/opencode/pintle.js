// Written by `pintle guard install`. Each hook asks the client of Pintle's guard; anything but an allow refuses.
// Nothing here may throw while it loads: OpenCode would go on without it.
const PROGRAM = "PROGRAM"
const ARGUMENTS = ["ARGUMENTS"]
// The client answers sooner; OpenCode itself would wait for ever.
const DEADLINE_MS = "DEADLINE"

// Whatever fails is an answer that denies: what a hook throws, OpenCode may pass over.
async function ask(event, told) {
  try {
    const text = JSON.stringify(told())
    const { spawn } = await import("node:child_process")
    const words = ARGUMENTS.map((word) => (word === "EVENT" ? event : word))
    return await new Promise((resolve) => {
      const child = spawn(PROGRAM, words, { stdio: ["pipe", "pipe", "ignore"] })
      const late = setTimeout(() => {
        resolve(denied(new Error("it was too late")))
        child.kill("SIGKILL")
      }, DEADLINE_MS)
      late.unref()
      child.on("error", (error) => resolve(denied(error)))
      let said = ""
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (part) => (said += part))
      child.stdout.on("error", (error) => resolve(denied(error)))
      child.stdin.on("error", () => {})
      child.on("close", () => {
        clearTimeout(late)
        try {
          resolve(JSON.parse(said))
        } catch {
          resolve({ deny: "Pintle's guard did not answer, so this is refused." })
        }
      })
      child.stdin.end(text)
    })
  } catch (error) {
    return denied(error)
  }
}

function denied(error) {
  return { deny: `Pintle's guard could not be asked: ${error instanceof Error ? error.message : "something failed"}` }
}

const refusal = (answer) => (answer?.allow === true ? "" : answer?.deny || "refused by Pintle's guard")

export const Pintle = async (context) => {
  const directory = context?.directory
  const told = (input, output) => ({ directory, input, output })
  return {
    event: async ({ event }) => {
      if (!["session.created", "session.idle"].includes(event?.type)) return
      await ask(event.type, () => ({ directory, type: event.type, properties: event.properties }))
    },
    "chat.message": async (input, output) => {
      const answer = await ask("chat.message", () => told(input, output))
      const [first, ...rest] = (output.parts ?? []).filter((part) => typeof part?.text === "string")
      const why = first && answer?.prompt ? "" : refusal(answer)
      if (why) throw new Error(why)
      if (answer.prompt) for (const part of rest) output.parts.splice(output.parts.indexOf(part), 1)
      if (first) first.text = [answer.prompt || first.text, answer.context].filter(Boolean).join("\n\n")
    },
    "tool.execute.before": async (input, output) => {
      const answer = await ask("tool.execute.before", () => told(input, output))
      const why = refusal(answer)
      if (why) throw new Error(why)
      if (answer.args === undefined) return
      // The object itself has to stay, as parts of a prompt have: another one in its place is passed over.
      for (const name of Object.keys(output.args)) if (!(name in answer.args)) delete output.args[name]
      Object.assign(output.args, answer.args)
    },
    "tool.execute.after": async (input, output) => {
      const answer = await ask("tool.execute.after", () => told(input, output))
      const text = refusal(answer) || answer.output
      if (typeof text === "string") output.output = text
    },
  }
}
