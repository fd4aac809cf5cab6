import type { Approval, HookFrame, JsonObject, RunEvent, RunEvents, RunHead, ShownMessage, ToolCallPart } from "../wire/types.ts";
import { type CallItem, callKeys, withCalls } from "./calls.ts";

/** The hook that stopped something, and why. */
export interface Blocked {
  readonly hookId: string | null;
  readonly name: string;
  readonly event: string;
  readonly reason: string;
}

/** One thing that stands in a conversation. */
export type Item =
  /** `place` is its place among the messages that are kept; `later` says that it came into a turn that another message began. */
  | { readonly kind: "asked"; readonly text: string; readonly runId?: string; readonly later?: true; readonly place?: number; readonly media?: readonly string[] }
  | { readonly kind: "steered"; readonly text: string }
  | { readonly kind: "note"; readonly name: string; readonly skill?: string; readonly text: string }
  | { readonly kind: "answer"; readonly text: string; readonly thinking: string; readonly open: boolean }
  | {
      readonly kind: "call";
      readonly id: string;
      /** The turn that it was heard in. */
      readonly runId?: string;
      /** The delegation that it was heard from: it is a sub-agent's. */
      readonly below?: string;
      readonly name: string;
      readonly agent?: string;
      readonly input?: JsonObject;
      readonly result?: string;
      readonly isError?: boolean;
      /** Whether a hook answered in the tool's place: then the tool did not run. */
      readonly byHook?: boolean;
      readonly blocked?: Blocked;
      /** Whether it waits for a person, or may be the one that does. */
      readonly held?: "waits" | "unknown";
      /** What a person answered about it. */
      readonly answered?: Approval;
    }
  /** `call` is the model's name of the call, of the turn `runId`; `input` what the call asks for, where only the call itself tells it. */
  | { readonly kind: "approval"; readonly id: string; readonly tool: string; readonly state: string; readonly call?: string; readonly runId?: string; readonly input?: JsonObject }
  | { readonly kind: "blocked"; readonly blocked: Blocked }
  /** Files that the agent made for the user. */
  | { readonly kind: "files"; readonly runId: string; readonly media: readonly string[] }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "stopped" };

/** A conversation as it is shown. */
export interface Transcript {
  readonly items: readonly Item[];
  /** What is being done, while something is. */
  readonly running: boolean;
  readonly activity: string;
  readonly runId: string | undefined;
  /** Whether the turn was cut, and goes on. */
  readonly resumed?: boolean;
}

export const EMPTY: Transcript = { items: [], running: false, activity: "", runId: undefined };

const isObject = (value: unknown): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value);

/** The arguments of a call, which are JSON in a text. */
function argumentsOf(call: ToolCallPart): JsonObject {
  const given = call.function.arguments;
  try {
    const read: unknown = JSON.parse(given);
    return isObject(read) ? read : {};
  } catch {
    return { arguments: given };
  }
}

/** What is kept of a conversation. What is known beyond it, and what ended it, stays. */
export function fromHistory(messages: readonly ShownMessage[], before: Transcript = EMPTY): Transcript {
  const items: Item[] = [];
  for (const [place, message] of messages.entries()) {
    if (message.role === "tool") {
      const at = items.findLastIndex((item) => item.kind === "call" && item.id === message.tool_call_id);
      const call = items[at];
      if (call?.kind === "call") {
        items[at] = { ...call, result: message.content };
      }
    } else if (message.origin === "hook" || message.role === "system") {
      items.push({ kind: "note", name: "", text: message.content, ...(message.skill === undefined ? {} : { skill: message.skill }) });
    } else if (message.role === "user") {
      items.push({ kind: "asked", text: message.content, place, ...turnIn(message, items), ...(message.media === undefined ? {} : { media: message.media }) });
    } else {
      if (message.content !== "" || (message.thinking ?? "") !== "") {
        items.push({ kind: "answer", text: message.content, thinking: message.thinking ?? "", open: false });
      }
      for (const call of message.tool_calls ?? []) {
        items.push({ kind: "call", id: call.id, name: call.function.name, input: argumentsOf(call) });
      }
    }
  }
  return { ...before, items: withFiles(withOutcomes(withTurns(items, before.items), before.items), before.items) };
}

/** The turn that a message stands in, where that is known, and whether another one before it began that. */
function turnIn({ turn_id: runId }: ShownMessage, before: readonly Item[]): { readonly runId?: string; readonly later?: true } {
  if (runId === undefined) {
    return {};
  }
  return before.some((item) => item.kind === "asked" && item.runId === runId) ? { runId, later: true } : { runId };
}

/** What came of the calls is not kept with their results: only whoever was there knows it. */
function withOutcomes(items: readonly Item[], known: readonly Item[]): readonly Item[] {
  const keys = callKeys(known);
  const outcomes = new Map<string, Pick<CallItem, "isError" | "byHook" | "blocked">>();
  for (const [at, item] of known.entries()) {
    const key = keys[at];
    if (item.kind === "call" && key !== undefined && (item.isError !== undefined || item.blocked !== undefined)) {
      outcomes.set(key, { ...(item.isError === undefined ? {} : { isError: item.isError }), ...(item.byHook === undefined ? {} : { byHook: item.byHook }), ...(item.blocked === undefined ? {} : { blocked: item.blocked }) });
    }
  }
  return withCalls(items, outcomes, (call, outcome) => ({ ...call, ...outcome }));
}

/** The messages with their turns, where these were heard and the history does not tell them yet. */
function withTurns(items: readonly Item[], known: readonly Item[]): Item[] {
  const told = new Set(items.map((item) => (item.kind === "asked" ? item.runId : undefined)));
  const runs = known.filter((item) => item.kind === "asked" && item.runId !== undefined && !told.has(item.runId));
  const all = [...items];
  for (let at = all.length - 1; at >= 0 && runs.length > 0; at -= 1) {
    const [item, run] = [all[at], runs.at(-1)];
    if (item?.kind === "asked" && item.runId === undefined && run?.kind === "asked" && item.text === run.text && run.runId !== undefined) {
      all[at] = { ...item, runId: run.runId };
      runs.pop();
    }
  }
  return all;
}

/** The files that agents made are kept nowhere beside the messages: they stay at the ends of their turns. */
function withFiles(items: readonly Item[], known: readonly Item[]): Item[] {
  const all = [...items];
  for (const files of known) {
    if (files.kind === "files") {
      const at = all.findIndex((item) => item.kind === "asked" && item.runId === files.runId);
      // What was said in the middle of it ends no turn.
      const next = all.findIndex((item, place) => place > at && item.kind === "asked" && item.runId !== files.runId);
      if (at >= 0) {
        all.splice(next < 0 ? all.length : next, 0, files);
      }
    }
  }
  return all;
}

/** What is left once the message at `place` is said anew. */
export function upTo(before: Transcript, place: number): Transcript {
  const at = before.items.findIndex((item) => item.kind === "asked" && item.place === place);
  return at < 0 ? before : { ...before, items: before.items.slice(0, at) };
}

/** The message that was asked last, with the files that went with it. */
export function withMedia(before: Transcript, media: readonly string[]): Transcript {
  const at = before.items.findLastIndex((item) => item.kind === "asked");
  return { ...before, items: before.items.map((item, place) => (place === at && item.kind === "asked" ? { ...item, media } : item)) };
}

/** What ended the last run and is kept nowhere: it stays below what is kept. */
export function endings(items: readonly Item[]): Item[] {
  const last = items.findLastIndex((item) => item.kind === "asked");
  return items.slice(last + 1).filter((item) => item.kind === "failed" || item.kind === "stopped" || item.kind === "blocked");
}

/** What stays of the conversation as it was heard, below what is kept of it: a turn that goes on and is not kept yet, what ended
 * the last one, what came of an answer that goes on, and what still waits for a person. */
export function unkept({ items, running, runId }: Transcript, kept: readonly Item[], goesOn = running): Item[] {
  const isUntold = running && runId !== undefined && !tells(kept, runId);
  const at = isUntold ? items.findIndex((item) => item.kind === "asked" && item.runId === runId) : -1;
  const waits = running ? items.filter((item) => item.kind === "approval" && item.state === "waiting") : [];
  return at >= 0 ? items.slice(at) : [...endings(items), ...(goesOn ? begun(items, kept) : []), ...waits];
}

/** Where pieces of an answer were missed. */
const MISSED = " … ";

/** The answer that is being given, unless it is kept by now. */
function begun(items: readonly Item[], kept: readonly Item[]): Item[] {
  const last = items.at(-1);
  if (last?.kind !== "answer" || !last.open) {
    return [];
  }
  const [first = ""] = last.text.split(MISSED);
  const told = kept.findLast((item) => item.kind === "answer");
  return told?.kind === "answer" && first !== "" && told.text.startsWith(first) ? [] : [last];
}

/** The connection was away: what came of an answer meanwhile is missing in it, until the whole of it is there. */
export function missed(before: Transcript): Transcript {
  const last = before.items.at(-1);
  const isPart = last?.kind === "answer" && last.open && last.text !== "" && !last.text.endsWith(MISSED);
  return isPart ? { ...before, items: [...before.items.slice(0, -1), { ...last, text: `${last.text}${MISSED}` }] } : before;
}

/** Whether the message of a turn is there. */
export const tells = (items: readonly Item[], runId: string): boolean => items.some((item) => item.kind === "asked" && item.runId === runId);

const closed = (items: readonly Item[]): Item[] => items.map((item) => (item.kind === "answer" && item.open ? { ...item, open: false } : item));

/** A piece of an answer, or of what was thought. */
function piece(items: readonly Item[], more: { text?: string; thinking?: string }): Item[] {
  const last = items.at(-1);
  if (last?.kind === "answer" && last.open) {
    return [...items.slice(0, -1), { ...last, text: last.text + (more.text ?? ""), thinking: last.thinking + (more.thinking ?? "") }];
  }
  return [...items, { kind: "answer", text: more.text ?? "", thinking: more.thinking ?? "", open: true }];
}

/** The whole of an answer, in the place of its pieces. */
function whole(items: readonly Item[], content: string): Item[] {
  const at = items.findLastIndex((item) => item.kind === "answer" && item.open);
  const open = items[at];
  if (open?.kind === "answer") {
    return items.map((item, index) => (index === at ? { ...open, text: content, open: false } : item));
  }
  const last = items.at(-1);
  const said = last?.kind === "answer" && last.text === content;
  return content === "" || said ? [...items] : [...items, { kind: "answer", text: content, thinking: "", open: false }];
}

/** The call of a run that is still open for `change`, changed; or a new one: ids of calls come again. */
function atCall(items: readonly Item[], { id, runId, below }: Heard, change: Partial<CallItem>, isOpen: (call: CallItem) => boolean): Item[] {
  // One that was read from the history knows its turn by its message.
  const at = items.findLastIndex((item, place) => item.kind === "call" && item.id === id && turnOf(items, place) === runId && item.below === below);
  const call = items[at];
  if (call?.kind === "call" && isOpen(call)) {
    return items.map((item, index) => (index === at ? { ...call, ...change } : item));
  }
  return [...closed(items), { kind: "call", id, runId, ...(below === undefined ? {} : { below }), name: "", ...change }];
}

/** Where a call was heard. */
interface Heard {
  readonly id: string;
  readonly runId: string;
  readonly below: string | undefined;
}

const isUndecided = ({ result, blocked }: CallItem): boolean => result === undefined && blocked === undefined;
const isWithoutResult = ({ result }: CallItem): boolean => result === undefined;
const always = (): boolean => true;

/** Where a hook stops a call that has run already. */
const AFTER: readonly string[] = ["after_tool", "post_tool_use", "after_tool_call"];

const blockedIn = ({ hookId, name, event, reason }: RunEvents["hook.blocked"]): Blocked => ({ hookId, name, event, reason });

/** What a hook stopped: the call that it is about, or the message. */
function stopped(before: Transcript, { payload, runId, delegationId: below }: RunHead & { readonly payload: RunEvents["hook.blocked"] }, agent: { readonly agent?: string }): Transcript {
  const blocked = blockedIn(payload);
  const { toolCallId, tool, arguments: input } = payload;
  if (toolCallId === undefined) {
    return { ...before, items: [...closed(before.items), { kind: "blocked", blocked }] };
  }
  const known = { blocked, ...(tool === undefined || tool === "" ? {} : { name: tool }), ...(input === undefined ? {} : { input }), ...agent };
  return { ...before, items: atCall(before.items, { id: toolCallId, runId, below }, known, AFTER.includes(payload.event) ? always : isUndecided) };
}

/** What happened in a run, as it is shown. Pure. */
export function heard(before: Transcript, event: RunEvent): Transcript {
  const below = event.delegationId !== undefined;
  const { items } = before;
  const agent = below ? { agent: event.agentId } : {};
  const of = (id: string): Heard => ({ id, runId: event.runId, below: event.delegationId });
  switch (event.type) {
    case "run.started":
      return below ? before : { ...before, running: true, resumed: false, runId: event.runId, activity: "", items: [...closed(items), { kind: "asked", text: event.payload.message, runId: event.runId }] };
    case "chunk":
      return below ? before : { ...before, running: true, items: piece(items, { text: event.payload.content }) };
    case "thinking":
      return below ? before : { ...before, running: true, items: piece(items, { thinking: event.payload.content }) };
    case "block.reply":
      return below ? before : { ...before, items: whole(items, event.payload.content) };
    case "activity":
      return { ...before, running: true, activity: event.payload.phase };
    case "run.retrying":
      return { ...before, running: true, activity: "retrying" };
    case "tool.call": {
      const { id, name, arguments: input } = event.payload;
      return { ...before, activity: "tool", items: atCall(items, of(id), { name, input, ...agent }, isUndecided) };
    }
    case "tool.result": {
      const { id, name, arguments: input, result, is_error: isError, answeredByHook: byHook } = event.payload;
      return { ...before, items: atCall(items, of(id), { name, result, isError, input, ...(byHook === undefined ? {} : { byHook }), ...agent }, isWithoutResult) };
    }
    case "hook.blocked":
      return stopped(before, event, agent);
    case "approval.waiting": {
      const { approvalId, tool, toolCallId } = event.payload;
      return { ...before, activity: "approval", items: [...closed(items), { kind: "approval", id: approvalId, tool, state: "waiting", ...(below ? {} : { call: toolCallId, runId: event.runId }) }] };
    }
    case "approval.decided": {
      const { approvalId, state } = event.payload;
      return { ...before, activity: "", items: items.map((item) => (item.kind === "approval" && item.id === approvalId ? { ...item, state } : item)) };
    }
    case "run.completed": {
      const { content, media } = event.payload;
      const files: Item[] = media === undefined ? [] : [{ kind: "files", runId: event.runId, media }];
      return below ? before : { ...before, running: false, activity: "", items: [...closed(whole(items, content)), ...files] };
    }
    case "run.failed":
      return below ? before : { ...before, running: false, activity: "", items: failed(closed(items), event.payload.error) };
    case "run.cancelled":
      return below ? before : { ...before, running: false, activity: "", items: [...closed(items), { kind: "stopped" }] };
  }
}

/** A failure. Where a hook stopped the message, that is the reason, and it stands there already. */
function failed(items: Item[], error: string): Item[] {
  return items.at(-1)?.kind === "blocked" ? items : [...items, { kind: "failed", error }];
}

/** A text of a skill, in its place. */
export function noted(before: Transcript, frame: HookFrame): Transcript {
  const note: Item = { kind: "note", name: frame.name, text: frame.content, ...(frame.skill === "" ? {} : { skill: frame.skill }) };
  return { ...before, items: [...closed(before.items), note] };
}

/** Something was said while a run was under way: what the gates left of it is known once it is kept. */
export function steered(before: Transcript, said: string): Transcript {
  return { ...before, items: [...closed(before.items), { kind: "steered", text: said }] };
}

/** The turn that something stands in, where it is known. */
export function turnOf(items: readonly Item[], at: number): string | undefined {
  const item = items[at];
  if (item?.kind === "call" && item.runId !== undefined) {
    return item.runId;
  }
  const asked = items.slice(0, at + 1).findLast((item) => item.kind === "asked");
  return asked?.kind === "asked" ? asked.runId : undefined;
}
