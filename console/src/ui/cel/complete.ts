/** What may stand where somebody types in a condition. */

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";

import { COMMAND, FUNCTIONS, SHELL, VALUES, VARIABLES } from "./names.ts";
import { read } from "./tokens.ts";

export interface Offer {
  readonly label: string;
  readonly type: "variable" | "function" | "property" | "keyword";
  readonly detail?: string;
}

const functions = (onValue: boolean): readonly Offer[] =>
  Object.entries(FUNCTIONS)
    .filter(([name, way]) => way.startsWith(`${name}(`) !== onValue)
    .map(([label, detail]) => ({ label, type: "function", detail }));

const members = (names: readonly string[]): readonly Offer[] => names.map((label) => ({ label, type: "property" }));

const ON_VALUES = functions(true);
const FIRST: readonly Offer[] = [
  ...Object.entries(VARIABLES).map(([label, detail]): Offer => ({ label, type: "variable", detail })),
  ...functions(false),
  ...VALUES.map((label): Offer => ({ label, type: "keyword" })),
];

/** The names of macros: `c` of `list.all(c, …)`, and whether it is one of the commands. */
const locals = (before: string): readonly (readonly [name: string, isOne: boolean])[] =>
  [...before.matchAll(/([\w.]+)\.(?:all|exists|exists_one|map|filter)\(\s*([A-Za-z_]\w*)\s*,/g)].map(([, list = "", name = ""]) => [name, list === "shell.commands"]);

/** What may stand at the end of `before`, and where in it the word begins that is typed; nothing where no name can stand. Pure. */
export function offers(before: string): { readonly from: number; readonly offers: readonly Offer[] } | null {
  if (read(before).isOpen) {
    return null;
  }
  const word = /[A-Za-z_]\w*$/.exec(before)?.[0] ?? "";
  const from = before.length - word.length;
  // Numbers with a suffix, and texts with a prefix, are no names.
  if (/\w$/.test(before.slice(0, from))) {
    return null;
  }
  const rest = before.slice(0, from).trimEnd();
  const around = locals(before);
  if (!rest.endsWith(".")) {
    return { from, offers: [...around.map(([label]): Offer => ({ label, type: "variable" })), ...FIRST] };
  }
  const of = rest.slice(0, -1).trimEnd();
  const whose = /(?:^|[^\w.])([A-Za-z_]\w*)$/.exec(of)?.[1];
  if (whose === "shell") {
    return { from, offers: members(SHELL) };
  }
  const isCommand = /(?:^|[^\w.])shell\.commands\[\d+\]$/.test(of) || around.some(([name, isOne]) => isOne && name === whose);
  // What a number is followed by is its fraction.
  return /(?:^|[^\w.])\d+$/.test(of) ? null : { from, offers: [...(isCommand ? members(COMMAND) : []), ...ON_VALUES] };
}

/** A name, and the brackets of a function with the cursor between them. */
function written({ label, type, detail }: Offer): Completion {
  const shown = { label, type, ...(detail === undefined ? {} : { detail }) };
  return type !== "function"
    ? shown
    : {
        ...shown,
        apply: (view, _, from, to) => {
          const isCalled = view.state.sliceDoc(to, to + 1) === "(";
          view.dispatch({ changes: { from, to, insert: isCalled ? label : `${label}()` }, selection: { anchor: from + label.length + 1 }, userEvent: "input.complete" });
        },
      };
}

/** The same, for the editor. Without a word it offers only what it was asked for, or what follows a point. */
export function complete(context: CompletionContext): CompletionResult | null {
  const found = offers(context.state.sliceDoc(0, context.pos));
  if (found === null || (found.from === context.pos && !context.explicit && context.matchBefore(/\.\s*/) === null)) {
    return null;
  }
  return { from: found.from, options: found.offers.map(written), validFor: /^\w*$/ };
}
