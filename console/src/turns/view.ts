/** One turn as it is shown: a tree of rounds, calls of models and tools, checkpoints and hooks. Pure. */

import type { SignKind } from "../ui/sign.tsx";
import type { TurnDetail, TurnHook, TurnSpan } from "../wire/types.ts";

/** What a row of the tree is about. */
export type RowOf =
  | { readonly kind: "round" | "model" | "tool" | "checkpoint"; readonly span: TurnSpan }
  /** `decided` is the checkpoint that says what became of the call. */
  | { readonly kind: "call"; readonly span: TurnSpan; readonly decided: TurnSpan | undefined }
  /** `beside` are the checkpoints that the same call passes one after another, this one among them. */
  | { readonly kind: "hook"; readonly hook: TurnHook; readonly span: TurnSpan; readonly beside: readonly TurnSpan[] }
  | { readonly kind: "skipped"; readonly hooks: readonly TurnHook[]; readonly span: TurnSpan }
  | { readonly kind: "turn"; readonly detail: TurnDetail };

export interface Row {
  readonly id: string;
  /** The turn that it stands in: the one that is shown, or a sub-agent's. */
  readonly turnId: string;
  readonly of: RowOf;
  readonly sign: SignKind | undefined;
  /** When it began, in milliseconds since the whole began, and how long it took. */
  readonly start: number;
  readonly took: number;
  readonly children: readonly Row[];
}

/** A row as the list has it. */
export interface Shown {
  readonly row: Row;
  readonly level: number;
  readonly isOpen: boolean;
}

/** A turn with those of its sub-agents. */
export interface Family {
  readonly turn: TurnDetail;
  readonly subAgents: readonly TurnDetail[];
}

/** The checkpoints that a call passes before it runs, in order. */
const CLEARING: readonly string[] = ["before_tool", "pre_tool_use", "approve_tool"];

const STOPS: readonly string[] = ["deny", "abort_turn", "hard_abort"];

/** The sign of a verdict. */
export function signOf(verdict: string | undefined): SignKind {
  if (verdict === undefined) {
    return "off";
  }
  if (STOPS.includes(verdict)) {
    return "block";
  }
  return verdict === "ask" ? "ask" : "allow";
}

/** The sign of a hook: its fault, or else what it said. */
export function signOfHook(hook: TurnHook): SignKind {
  if (hook.fault !== undefined) {
    return hook.fault === "timed_out" ? "timeout" : "error";
  }
  return signOf(hook.verdict);
}

/** Whether a hook had nothing to say here: it did not run, and nothing stood in its place. */
const isSkipped = (hook: TurnHook): boolean => !hook.ran && hook.fault === undefined && hook.verdict === undefined;

/** Whether what became of a call was decided before it came to `span`, where then nobody was asked. */
function isDecidedBefore(span: TurnSpan, beside: readonly TurnSpan[]): boolean {
  const before = beside.slice(0, Math.max(0, beside.indexOf(span)));
  return (span.hooks ?? []).every(isSkipped) && before.some(({ ruling }) => signOf(ruling) === signOf(span.ruling));
}

function signOfCheckpoint(span: TurnSpan, beside: readonly TurnSpan[]): SignKind | undefined {
  const ruled = signOf(span.ruling);
  if ((ruled === "block" || ruled === "ask") && isDecidedBefore(span, beside)) {
    return undefined;
  }
  if (ruled === "block" || ruled === "ask") {
    return ruled;
  }
  const signs = (span.hooks ?? []).map(signOfHook);
  return signs.find((sign) => sign === "error" || sign === "timeout") ?? (signs.includes("allow") ? "allow" : undefined);
}

const WEIGHT: Readonly<Record<SignKind, number>> = { block: 6, tripped: 5, ask: 4, error: 3, timeout: 3, allow: 1, off: 0 };

function worst(rows: readonly Row[]): SignKind | undefined {
  return rows.map(({ sign }) => sign).reduce((one, two) => ((two === undefined ? -1 : WEIGHT[two]) > (one === undefined ? -1 : WEIGHT[one]) ? two : one), undefined);
}

/** Checkpoints that nobody was asked at and that decided nothing are left out: what they tell stands in other rows. */
const saysSomething = (span: TurnSpan): boolean => span.kind !== "checkpoint" || (span.hooks ?? []).length > 0 || span.text !== undefined || ["block", "ask"].includes(signOf(span.ruling));

class Builder {
  private readonly below = new Map<string | null, TurnSpan[]>();
  private readonly turns = new Map<string | null, TurnDetail[]>();
  private readonly turnId: string;
  private readonly spans: readonly TurnSpan[];

  constructor(
    detail: TurnDetail,
    private readonly family: Family,
    /** How much later than the whole this turn began, in milliseconds. */
    private readonly later: number,
    private readonly prefix: string,
  ) {
    this.turnId = detail.turn.turnId;
    this.spans = detail.spans;
    const known = new Set(detail.spans.map(({ id }) => id));
    for (const span of detail.spans) {
      this.put(this.below, span.parentId !== null && known.has(span.parentId) ? span.parentId : null, span);
    }
    for (const child of family.subAgents.filter(({ parentTurnId }) => parentTurnId === detail.turn.turnId)) {
      this.put(this.turns, child.parentSpanId !== null && known.has(child.parentSpanId) ? child.parentSpanId : null, child);
    }
  }

  private put<Value>(map: Map<string | null, Value[]>, key: string | null, value: Value): void {
    const list = map.get(key);
    if (list === undefined) {
      map.set(key, [value]);
    } else {
      list.push(value);
    }
  }

  rows(parent: string | null): Row[] {
    const spans = (this.below.get(parent) ?? []).filter(saysSomething).map((span) => this.row(span));
    const turns = (this.turns.get(parent) ?? []).map((child) => this.turnRow(child));
    return [...spans, ...turns].sort((one, two) => one.start - two.start);
  }

  private row(span: TurnSpan): Row {
    const { kind } = span;
    const start = span.startMs + this.later;
    const head = { id: this.prefix + span.id, turnId: this.turnId, start, took: span.durationMs ?? 0 };
    if (kind === "checkpoint") {
      return { ...head, of: { kind, span }, sign: signOfCheckpoint(span, this.clearing(span)), children: this.hookRows(span) };
    }
    const children = this.rows(span.id);
    const end = children.reduce((last, row) => Math.max(last, row.start + row.took), start + head.took);
    if (kind === "call") {
      const own = this.below.get(span.id) ?? [];
      const decided = own.findLast(({ ruling }) => ["block", "ask"].includes(signOf(ruling))) ?? own.findLast(({ permit }) => permit !== undefined) ?? own.find(({ call }) => call !== undefined);
      const said = worst(children.filter(({ sign }) => sign !== "off"));
      const sign = said === "block" || said === "ask" ? said : span.isError === true ? "error" : (said ?? (span.result === undefined ? undefined : "allow"));
      return { ...head, took: end - start, of: { kind, span, decided }, sign, children };
    }
    return { ...head, took: end - start, of: { kind, span }, sign: kind === "tool" ? undefined : worst(children), children };
  }

  private turnRow(child: TurnDetail): Row {
    const later = Math.max(0, Date.parse(child.turn.startedAt) - Date.parse(this.family.turn.turn.startedAt));
    const children = new Builder(child, this.family, later, `${child.turn.turnId}/`).rows(null);
    const sign = worst(children) ?? (child.turn.ending === "failed" ? "error" : undefined);
    return { id: child.turn.turnId, turnId: child.turn.turnId, of: { kind: "turn", detail: child }, sign, start: later, took: child.durationMs, children };
  }

  /** The checkpoints that clear the call which `span` is about, in order. */
  private clearing(span: TurnSpan): readonly TurnSpan[] {
    const isOfCall = (one: TurnSpan): boolean => one.kind === "checkpoint" && one.round === span.round && one.toolCallId === span.toolCallId && CLEARING.includes(one.name);
    return span.toolCallId !== undefined && CLEARING.includes(span.name) ? this.spans.filter(isOfCall).sort((one, two) => CLEARING.indexOf(one.name) - CLEARING.indexOf(two.name)) : [span];
  }

  private hookRows(span: TurnSpan): Row[] {
    const beside = this.clearing(span);
    const hooks = (span.hooks ?? []).map((hook, at): Row => ({
      id: `${this.prefix}${span.id}.${at}`,
      turnId: this.turnId,
      of: { kind: "hook", hook, span, beside },
      sign: signOfHook(hook),
      start: (hook.startMs ?? span.startMs) + this.later,
      took: hook.durationMs ?? 0,
      children: [],
    }));
    const isFolded = ({ of }: Row): boolean => of.kind === "hook" && isSkipped(of.hook);
    const folded = hooks.filter(isFolded);
    const ran = hooks.filter((row) => !isFolded(row));
    if (folded.length === 0) {
      return ran;
    }
    const row: Row = { id: `${this.prefix}${span.id}.skipped`, turnId: this.turnId, of: { kind: "skipped", hooks: (span.hooks ?? []).filter(isSkipped), span }, sign: undefined, start: span.startMs + this.later, took: 0, children: folded };
    return [...ran, row];
  }
}

/** The tree of a turn. */
export const tree = (family: Family): Row[] => new Builder(family.turn, family, 0, "").rows(null);

/** The rows that are seen, in order. `turned` are those that are not as they are at first. */
export function shown(rows: readonly Row[], turned: ReadonlySet<string>, level = 1): Shown[] {
  return rows.flatMap((row) => {
    const isOpen = (row.of.kind !== "skipped") !== turned.has(row.id);
    return [{ row, level, isOpen }, ...(isOpen ? shown(row.children, turned, level + 1) : [])];
  });
}

/** Every row. */
export function all(rows: readonly Row[]): Row[] {
  return rows.flatMap((row) => [row, ...all(row.children)]);
}

/** The row that an address means by an execution of a rule, or by a call of a tool: the hook, or the call. */
export function rowOf(rows: readonly Row[], execution: string | undefined, call: string | undefined): Row | undefined {
  const every = all(rows);
  const hook = execution === undefined ? undefined : every.find(({ of }) => of.kind === "hook" && of.hook.execution?.id === execution);
  // The id of a call comes again in later rounds: the newest one is meant.
  return hook ?? (call === undefined ? undefined : every.findLast(({ of }) => of.kind === "call" && of.span.toolCallId === call));
}

/** What happened in a turn, in the parts of one sentence; `row` is where it is seen. */
export interface Happened {
  readonly kind: "blocked" | "asked" | "waiting" | "failed" | "faulted" | "running" | "stopped" | "cut" | "passed";
  readonly what: string;
  readonly hook: string;
  readonly why: string;
  readonly row: string | undefined;
  /** Whether the hook said nothing, because it failed. */
  readonly isFault?: boolean;
  /** How many more there were, and where the next one is seen. */
  readonly more: number;
  readonly next?: string | undefined;
}

/** The hook whose verdict the ruling of a checkpoint is. */
export function deciding(span: TurnSpan): TurnHook | undefined {
  const hooks = span.hooks ?? [];
  const same = hooks.filter(({ verdict }) => signOf(verdict) === signOf(span.ruling));
  return same.find(({ verdict }) => verdict === span.ruling) ?? same.at(-1);
}

/** The row that says most of what happened: a refusal, a question, a fault; in this order. */
function telling(rows: readonly Row[], sign: (kind: SignKind | undefined) => boolean): Row[] {
  return all(rows).filter((row) => (row.of.kind === "checkpoint" && sign(row.sign)) || (row.of.kind === "hook" && row.of.hook.fault !== undefined && sign(row.sign)));
}

export function happened(family: Family, rows: readonly Row[]): Happened {
  const { ending, error } = family.turn.turn;
  const nothing = { what: "", hook: "", why: "", row: undefined, more: 0 };
  const of = (found: readonly Row[], kind: Happened["kind"]): Happened | undefined => {
    const checkpoints = found.filter((row) => row.of.kind === "checkpoint");
    const [first] = checkpoints;
    if (first === undefined || first.of.kind !== "checkpoint") {
      return undefined;
    }
    const { span } = first.of;
    const hook = deciding(span);
    const own = first.children.find((row) => row.of.kind === "hook" && row.of.hook === hook);
    const why = hook?.reason ?? hook?.cause ?? hook?.faultDetail ?? span.text ?? "";
    const calls = new Set(checkpoints.map((row) => (row.of.kind === "checkpoint" ? (row.of.span.toolCallId ?? row.id) : row.id)));
    const next = checkpoints.find((row) => row.of.kind === "checkpoint" && (row.of.span.toolCallId ?? row.id) !== (span.toolCallId ?? first.id));
    return { kind, what: span.tool ?? span.name, hook: hook?.name ?? "", why, row: own?.id ?? first.id, ...(hook?.fault === undefined ? {} : { isFault: true }), more: calls.size - 1, next: next?.id };
  };
  const asks = telling(rows, (sign) => sign === "ask");
  const blocked = of(telling(rows, (sign) => sign === "block"), "blocked");
  const asked = of([...asks].reverse(), ending === "waiting" ? "waiting" : "asked");
  if (ending === "waiting" && asked !== undefined) {
    return { ...asked, more: 0 };
  }
  if (blocked !== undefined) {
    return blocked;
  }
  if (ending === "failed") {
    return { ...nothing, kind: "failed", why: error ?? "" };
  }
  const faults = all(rows).filter((row) => row.of.kind === "hook" && row.of.hook.fault !== undefined);
  const [fault] = faults;
  if (fault?.of.kind === "hook") {
    const { hook, span } = fault.of;
    return { kind: "faulted", what: span.tool ?? span.name, hook: hook.name, why: hook.cause ?? hook.faultDetail ?? "", row: fault.id, more: faults.length - 1 };
  }
  if (asked !== undefined) {
    return { ...asked, more: 0 };
  }
  return { ...nothing, kind: ending === "completed" || ending === "waiting" ? "passed" : ending };
}

/** How many calls there were, and how many hooks answered. */
export function counts(family: Family): { readonly calls: number; readonly hooks: number } {
  const spans = [family.turn, ...family.subAgents].flatMap((detail) => detail.spans);
  return {
    calls: spans.filter(({ kind }) => kind === "call").length,
    hooks: spans.reduce((sum, { hooks = [] }) => sum + hooks.filter(({ ran, verdict }) => ran && verdict !== undefined).length, 0),
  };
}

/** What judges cost in a turn and those of its sub-agents, in tokens of the budget: an answer from the cache costs nothing. */
export function judgeTokens(family: Family): number {
  const hooks = [family.turn, ...family.subAgents].flatMap(({ spans }) => spans).flatMap(({ hooks = [] }) => hooks);
  return hooks.reduce((sum, { execution }) => sum + (execution?.cached === true ? 0 : (execution?.tokens ?? 0)), 0);
}

/** What the agent's own model calls cost in a turn and those of its sub-agents, in tokens, as far as providers tell. */
export function modelTokens(family: Family): { readonly read: number; readonly written: number } {
  const told = [family.turn, ...family.subAgents].flatMap(({ spans }) => spans).flatMap(({ usage }) => (usage === undefined ? [] : [usage]));
  return told.reduce((sum, usage) => ({ read: sum.read + usage.prompt_tokens, written: sum.written + usage.completion_tokens }), { read: 0, written: 0 });
}

/** How long the bars are together, in milliseconds. */
export const length = (rows: readonly Row[]): number => all(rows).reduce((end, { start, took }) => Math.max(end, start + took), 1);
