/** A checkpoint as a test of one of its hooks. Pure. */

import type { Hook, TurnHook, TurnSpan } from "../wire/types.ts";

export interface HookTest {
  readonly line: string;
  /** The file's name, and what stands in it: the event as `hooks.test` takes it, and what came of it. */
  readonly name: string;
  readonly text: string;
}

/** A word of a shell command, whatever stands in it. */
export const quoted = (word: string): string => (/^[\w./:=@+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** What a terminal calls a hook: its name, or its id where several rules have that name. */
const calledOf = (hook: TurnHook, rules: readonly Pick<Hook, "name">[]): string => (rules.filter(({ name }) => name === hook.name).length > 1 ? (hook.execution?.hookId ?? hook.name) : hook.name);

/** None where the arguments were too long to be kept. `rules` are those that are known, whatever they are called. */
export function testOf(hook: TurnHook, span: TurnSpan, prompt: string | null, rules: readonly Pick<Hook, "name">[]): HookTest | undefined {
  const input = span.call?.arguments;
  const { tool } = span;
  if (tool === undefined ? prompt === null : input === undefined) {
    return undefined;
  }
  const about = tool === undefined ? ["--prompt", prompt ?? ""] : ["--tool", tool, "--input", JSON.stringify(input)];
  const line = ["pintle", "hooks", "test", calledOf(hook, rules), "--event", hook.checkpoint, ...about].map(quoted).join(" ");
  const sampleEvent = tool === undefined ? { rawInput: prompt } : { toolName: tool, toolInput: input };
  const test = { hook: hook.name, event: hook.checkpoint, sampleEvent, expected: { verdict: hook.verdict, reason: hook.reason } };
  return { line, name: `${hook.name.replaceAll(/[^\w.-]+/g, "-")}.test.json`, text: `${JSON.stringify(test, null, 2)}\n` };
}
