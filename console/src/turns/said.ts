import type { Words } from "../words/use-words.ts";
import type { TurnCall, TurnHook } from "../wire/types.ts";
import { amount } from "./cost.ts";
import type { Row } from "./view.ts";

/** The members of arguments that say most of a call, by themselves. */
const HEADS = ["command", "cmd", "path", "url"];

/** A value on one line: the text in it that says most, or else JSON. */
export function oneLine(value: unknown): string {
  if (typeof value === "object" && value !== null) {
    const members = value as Readonly<Record<string, unknown>>;
    const values = Object.values(members);
    const head = HEADS.map((name) => members[name]).find((one) => typeof one === "string") ?? (values.length === 1 ? values[0] : undefined);
    return typeof head === "string" ? head : JSON.stringify(value);
  }
  return value === undefined ? "" : String(value);
}

/** What a person said who refused a call, where a refusal is a person's: their note. Pure. */
export function noteOfPerson(refusal: string): string | undefined {
  const found = /^Tool execution refused by a person(?:: ([\s\S]*?))?(?: \(asked by hook "[^"]*"\))?$/.exec(refusal);
  return found === null ? undefined : (found[1] ?? "");
}

/** What hook refused a call and why, where only the text that the agent read tells it. Pure. */
export function deniedBy(refusal: string): { readonly name: string; readonly reason: string } | undefined {
  const found = /^Tool execution denied by (?:approval )?hook: (?<reason>[\s\S]*) \(hook "(?<name>[^"]*)"\)$/.exec(refusal) ?? BLOCKED.exec(refusal);
  const { name = "", reason = "" } = found?.groups ?? {};
  return found === null ? undefined : { name, reason: causeOf(reason, name) };
}

/** The words of a gate of rules. */
const BLOCKED = /^Hook blocked: [a-z_]+: (?<name>.*?): (?<reason>[\s\S]*)$/;

/** What a hook said, or what befell it, without its name: that stands beside it. Pure. */
function causeOf(reason: string, name: string): string {
  const begins = [`hook "${name}" failed: `, `hook "${name}" `].find((one) => reason.startsWith(one)) ?? "";
  return reason.slice(begins.length);
}

/** Why something was refused, in the words of whoever refused it. Pure. */
export const whyBlocked = (refusal: string, name = ""): string => deniedBy(refusal)?.reason ?? (noteOfPerson(refusal) || causeOf(refusal, name));

/** What ends a sentence that ends with what somebody said: nothing where they ended it, and after Latin letters the mark that
 * belongs to them. Pure. */
export function endOf(said: string, stop: string): string {
  if (/[.!?。！？]$/.test(said)) {
    return "";
  }
  return /[\x21-\x7e]$/.test(said) ? "." : stop;
}

/** Why a hook did not run, in plain words. */
export function whySkipped(hook: TurnHook, words: Words["turns"]): string {
  if (hook.by !== undefined) {
    return words.skipped.by(hook.by);
  }
  if (hook.compared !== undefined) {
    return words.skipped.compared(hook.compared.pattern, hook.compared.value);
  }
  const said = words.skipped.reasons[hook.reason as keyof typeof words.skipped.reasons] ?? hook.reason ?? "";
  return hook.value === undefined ? said : words.skipped.value(said, hook.value);
}

/** Faults of which the server's phrase says no more than their word. */
const SAYS_NO_MORE: readonly string[] = ["cannot_start", "unreadable", "panicked", "cancelled", "condition_failed", "unavailable"];

/** What befell a hook, each thing once: `word` is what its fault is called. Pure. */
export function faultLine({ fault = "", faultDetail, cause }: Pick<TurnHook, "fault" | "faultDetail" | "cause">, word: string, colon: string): string {
  const detail = SAYS_NO_MORE.includes(fault) ? undefined : faultDetail;
  return [detail?.includes(word) === true ? undefined : word, detail, cause].filter(Boolean).join(colon);
}

/** The arguments of a call, or what is kept of them. */
export const argumentsOf = (call: TurnCall | undefined): unknown => call?.arguments ?? (call?.beginning === undefined ? undefined : `${call.beginning}…`);

/** What a row is called, and what stands behind its name. */
export function nameOf({ of }: Row, words: Words["turns"]): { readonly name: string; readonly about: string; readonly isCode: boolean } {
  switch (of.kind) {
    case "round":
      return { name: words.round(of.span.round), about: "", isCode: false };
    case "model":
      return { name: words.model, about: [of.span.model, of.span.costUsd === undefined ? undefined : words.money(amount(of.span.costUsd), true), of.span.content].filter(Boolean).join(" · "), isCode: false };
    case "call":
      return { name: of.span.name, about: oneLine(argumentsOf(of.decided?.call)), isCode: true };
    case "tool":
      return { name: words.runs, about: "", isCode: false };
    case "checkpoint":
      return { name: of.span.name, about: of.span.toolCallId === undefined ? (of.span.tool ?? "") : "", isCode: true };
    case "hook":
      return { name: of.hook.name, about: of.hook.ran || of.hook.fault !== undefined ? (of.hook.reason ?? of.hook.cause ?? of.hook.faultDetail ?? "") : whySkipped(of.hook, words), isCode: false };
    case "skipped":
      return { name: words.notRun(of.hooks.length), about: "", isCode: false };
    case "turn":
      return { name: words.child(of.detail.turn.agentId), about: of.detail.turn.prompt ?? "", isCode: false };
  }
}

/** The word beside the sign of a row. */
export function signWord({ of, sign = "off" }: Row, words: Words): string {
  const { verdicts, faults, signs } = words.turns;
  if (of.kind === "hook") {
    const { fault, verdict } = of.hook;
    return fault === undefined ? (verdicts[verdict as keyof typeof verdicts] ?? verdict ?? "") : (faults[fault as keyof typeof faults] ?? fault);
  }
  return sign === "off" || sign === "tripped" ? "" : signs[sign];
}
