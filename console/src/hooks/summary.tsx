import { type Hook, GATES } from "../wire/types.ts";
import type { Words } from "../words/use-words.ts";

/** What a hook does, in one sentence. Pure. */
export function summary(hook: Hook, words: Words): string {
  const { sentence, what } = words.hooks;
  const host = (): string => {
    try {
      return new URL(String(hook.config["url"])).host;
    } catch {
      return words.hooks.handlers.http;
    }
  };
  const who = hook.config_hidden === true ? what.hidden : { command: () => what.command, http: () => what.http(host()), prompt: () => what.prompt, script: () => what.script }[hook.handler_type]();
  const when = hook.matcher === "" ? words.events[hook.event].when : words.events[hook.event].whenMatching(hook.matcher);
  return sentence(who, when, GATES.includes(hook.event));
}
