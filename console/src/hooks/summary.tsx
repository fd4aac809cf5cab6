import { GATES, type Hook, isHookEvent } from "../wire/types.ts";
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
  const said = isHookEvent(hook.event) ? words.events[hook.event] : undefined;
  const when = (hook.matcher === "" ? said?.when : said?.whenMatching(hook.matcher)) ?? hook.event;
  return sentence(who, when, GATES.includes(hook.event));
}
