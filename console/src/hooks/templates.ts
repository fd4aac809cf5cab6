import type { Words } from "../words/use-words.ts";
import { type Draft, EMPTY } from "./draft.ts";

/** The hooks that somebody can begin with. The first three teach what hooks are. */
export const TEMPLATES = ["forcePush", "outside", "keys", "judge", "context", "notify"] as const;
export type Template = (typeof TEMPLATES)[number];

/** The first three, which a page without hooks shows. */
export const STARTERS: readonly Template[] = TEMPLATES.slice(0, 3);

const quoted = (text: string): string => JSON.stringify(text);

const FORCE_PUSH = (reason: string): string => `function handle(event) {
  for (const { name, argv } of event.shell.commands) {
    const forces = argv.some((word) => word === "-f" || word.startsWith("--force"));
    if (name === "git" && argv.includes("push") && forces) {
      return { decision: "block", reason: ${quoted(reason)} };
    }
  }
  return { decision: "allow" };
}
`;

const OUTSIDE = (reason: string): string => `function handle(event) {
  const { outside } = event.shell;
  if (outside.length > 0) {
    return { decision: "ask", reason: ${quoted(reason)} + outside.join(", ") };
  }
  return { decision: "allow" };
}
`;

const KEYS = `function handle(event) {
  const clean = event.rawInput.replace(/\\bsk-[A-Za-z0-9_-]{16,}/g, "[KEY]");
  if (clean === event.rawInput) {
    return { decision: "allow" };
  }
  return { decision: "allow", updatedInput: { rawInput: clean } };
}
`;

const CONTEXT = (text: string): string => `function handle(event) {
  return { decision: "allow", additionalContext: ${quoted(text)} };
}
`;

/** A template as a form that can be saved. Pure. */
export function fromTemplate(template: Template, { rules }: Words): Draft {
  const { name, says } = rules.templates[template];
  switch (template) {
    case "forcePush":
      return { ...EMPTY, name, handler: "script", matcher: "^exec$", breaker: "faults", source: FORCE_PUSH(says) };
    case "outside":
      return { ...EMPTY, name, handler: "script", matcher: "^exec$", breaker: "faults", source: OUTSIDE(says) };
    case "keys":
      return { ...EMPTY, name, event: "user_prompt_submit", handler: "script", mayRewrite: true, breaker: "faults", source: KEYS };
    case "judge":
      return { ...EMPTY, name, handler: "prompt", matcher: "^exec$", template: says };
    case "context":
      return { ...EMPTY, name, event: "user_prompt_submit", handler: "script", condition: "first_prompt", breaker: "faults", source: CONTEXT(says) };
    case "notify":
      return { ...EMPTY, name, event: "stop", handler: "http", onTimeout: "allow", onTrip: "allow", url: "https://" };
  }
}

/** An event to try a hook with. */
export interface TryOut {
  /** The input of the tool, as JSON. */
  readonly input: string;
  readonly text: string;
}

const tryOut = (input: object, text: string): TryOut => ({ input: JSON.stringify(input, null, 2), text });

/** What a hook is tried with that is not from a template. */
export const ANY_EVENT: TryOut = tryOut({ command: "ls" }, "");

/** An event that a template is about: where it decides, one that it stops. Pure. */
export function tryOutOf(template: Template | undefined, { rules }: Words): TryOut {
  switch (template) {
    case "forcePush":
      return tryOut({ command: "git push --force origin main" }, "");
    case "outside":
      return tryOut({ command: "cat /etc/hosts" }, "");
    case "keys":
      return tryOut({}, rules.tryOuts.keys("sk-aaaabbbbccccddddeeee"));
    case "judge":
      return tryOut({ command: "rm -rf /srv/data" }, "");
    case "context":
    case "notify":
      return tryOut({}, rules.tryOuts.context);
    case undefined:
      return ANY_EVENT;
  }
}

/** The template that an address names. */
export const templateOf = (name: string | undefined): Template | undefined => TEMPLATES.find((one) => one === name);
