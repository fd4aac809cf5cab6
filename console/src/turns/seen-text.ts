import type { SeenMessage, SeenRequest } from "../wire/types.ts";

/** A message as lines that can be compared: who speaks, what they say, what they call. Pure. */
export function linesOf({ role, content, tool_calls = [] }: SeenMessage): string {
  const calls = tool_calls.map((call) => `→ ${call.function.name}(${call.function.arguments})`);
  return [`[${role}]`, ...(content === "" ? [] : [content]), ...calls].join("\n");
}

/** A request as text: the model, what it is sent, and the tools that it is offered. Pure. */
export const textOf = ({ model, messages, tools }: SeenRequest): string => [model, ...messages.map(linesOf), tools.join(", ")].join("\n\n");

/** The messages that a call shares with the one before, and those that are new in it. Pure. */
export function parted(messages: readonly SeenMessage[]): { readonly known: readonly SeenMessage[]; readonly fresh: readonly SeenMessage[] } {
  return { known: messages.filter(({ isNew }) => !isNew), fresh: messages.filter(({ isNew }) => isNew) };
}
