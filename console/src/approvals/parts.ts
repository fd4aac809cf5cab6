import type { Approval, Approvers, JsonObject } from "../wire/types.ts";
import type { Words } from "../words/use-words.ts";

/** Whether something may still become of an approval: it waits, or the call that was approved has not run yet. Pure. */
export const isOpen = (state: Approval["state"]): boolean => state === "waiting" || state === "approved";

/** Approvals as they are looked at: what waits stands first, the oldest of it on top; then what was answered, the newest on top. Pure. */
export function inOrder(approvals: readonly Approval[]): readonly Approval[] {
  const rank = ({ state }: Approval): number => (state === "waiting" ? 0 : 1);
  const later = (one: Approval, other: Approval): number => Date.parse(one.asked_at) - Date.parse(other.asked_at);
  return [...approvals].sort((one, other) => rank(one) - rank(other) || (one.state === "waiting" ? later(one, other) : later(other, one)));
}

/** Who may answer, in a sentence or two. Pure. */
export function whoMay({ named, otherThanAsker, asker }: Approvers, words: Words["approvals"]): string {
  if (named?.length === 0) {
    return words.nobodyNamed;
  }
  const not = otherThanAsker ? words.notTheAsker(asker ?? "") : "";
  // Whoever asked is the user of the conversation.
  const who = named !== null ? words.namedApprovers(named) : otherThanAsker ? words.administrators : words.anyApprover;
  return not === "" ? who : words.both(who, not);
}

/** The arguments that hold a command. */
const COMMANDS = ["cmd", "command"];

/** What a call would do, as a person reads it: a command, a change of a file, a new text of a file, or arguments. */
export type CallPart =
  | { readonly is: "command"; readonly text: string }
  | { readonly is: "change"; readonly path: string; readonly before: string; readonly after: string }
  | { readonly is: "file"; readonly path: string; readonly text: string }
  | { readonly is: "rest"; readonly text: string };

const texts = (input: JsonObject, ...names: readonly string[]): readonly string[] | undefined => {
  const found = names.map((name) => input[name]);
  return found.every((value): value is string => typeof value === "string") ? found : undefined;
};

const without = (input: JsonObject, ...names: readonly string[]): JsonObject => Object.fromEntries(Object.entries(input).filter(([name]) => !names.includes(name)));

/** The parts of a call: nothing of its arguments is left out. Pure. */
export function partsOf(input: JsonObject): readonly CallPart[] {
  const rest = (left: JsonObject): readonly CallPart[] => (Object.keys(left).length === 0 ? [] : [{ is: "rest", text: JSON.stringify(left, null, 2) }]);
  const command = COMMANDS.find((name) => typeof input[name] === "string");
  if (command !== undefined) {
    return [{ is: "command", text: input[command] as string }, ...rest(without(input, command))];
  }
  const change = texts(input, "path", "old_text", "new_text");
  if (change !== undefined) {
    const [path = "", before = "", after = ""] = change;
    return [{ is: "change", path, before, after }, ...rest(without(input, "path", "old_text", "new_text"))];
  }
  const file = texts(input, "path", "content");
  if (file !== undefined) {
    const [path = "", text = ""] = file;
    return [{ is: "file", path, text }, ...rest(without(input, "path", "content"))];
  }
  return [{ is: "rest", text: JSON.stringify(input, null, 2) }];
}
