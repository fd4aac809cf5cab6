/** Why a hook would not run, in the language of the page. Pure. */

import type { Words } from "../words/use-words.ts";

type Texts = Words["rules"]["whyNot"];

/** A text as the server quotes it; one with escapes that only the server has stays as it is. */
function unquoted(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text.replace(/^"([\s\S]*)"$/, "$1");
  }
}

/** A quoted text. */
const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`;

const KNOWN: readonly (readonly [RegExp, (words: Texts, ...parts: readonly string[]) => string])[] = [
  [/^switched off$/, (words) => words.off],
  [/^switched off: ([\s\S]*)$/, (words, why = "") => words.offBecause(why)],
  [/^not accepted by anybody$/, (words) => words.untrusted],
  [/^about other agents$/, (words) => words.others],
  [/^about something else$/, (words) => words.else],
  [/^the agent does not plan: its flow is direct$/, (words) => words.direct],
  [new RegExp(`^its matcher (${QUOTED}) does not match (${QUOTED})$`), (words, pattern = "", value = "") => words.matcher(unquoted(pattern), unquoted(value))],
  [/^its if_expr is false: ([\s\S]*)$/, (words, text = "") => words.condition(text)],
  [new RegExp(`^its tool_filter (\\[[\\s\\S]*\\]) does not name (${QUOTED})$`), (words, tools = "", tool = "") => words.tools(tools, unquoted(tool))],
  [/^hook "([\s\S]*)" decides before it$/, (words, hook = "") => words.decided(hook)],
  [/^it blocks: it ([\s\S]*)$/, (words, fault = "") => words.blocks(fault)],
  [/^it is skipped: it ([\s\S]*)$/, (words, fault = "") => words.skipped(fault)],
  [/^hook "[\s\S]*" \([^)]*\) is off since \S+: circuit breaker, /, (words) => words.breaker],
];

/** What the server says of a hook in a chain; what nobody here knows stays as it is. */
export function whyNot(said: string, words: Texts): string {
  for (const [pattern, say] of KNOWN) {
    const found = pattern.exec(said);
    if (found !== null) {
      return say(words, ...found.slice(1));
    }
  }
  return said;
}
