import { CHECKPOINTS, type CheckpointName, type JsonObject, type TurnDetail, type TurnHook, type TurnSpan } from "../wire/types.ts";

/** What happens in a turn at which hooks are asked: each has one checkpoint or several, one after another. */
export const MOMENTS = {
  session: ["session_start"],
  message: ["user_prompt_submit", "after_user_input"],
  plan: ["before_planning"],
  model: ["before_each_agent", "before_first_agent", "before_llm", "after_llm"],
  call: ["before_tool", "pre_tool_use", "approve_tool"],
  result: ["after_tool", "post_tool_use", "after_tool_call"],
  subAgent: ["subagent_start", "subagent_stop"],
  end: ["stop"],
  runtime: ["runtime"],
} as const satisfies Readonly<Record<string, readonly CheckpointName[]>>;

export type Moment = keyof typeof MOMENTS;
export const ALL_MOMENTS = Object.keys(MOMENTS) as readonly Moment[];

/** The moments that are about a tool. */
export const hasTool = (moment: Moment): boolean => moment === "call" || moment === "result";

/** The moment that a checkpoint stands in. */
export function momentOf(name: string): Moment | undefined {
  const checkpoint = CHECKPOINTS.find((one) => one === name);
  return checkpoint === undefined ? undefined : ALL_MOMENTS.find((moment) => (MOMENTS[moment] as readonly CheckpointName[]).includes(checkpoint));
}

/** Something that happened in a turn, as a question about now, with what hooks did then. */
export interface Past {
  readonly moment: Moment;
  readonly agent: string;
  readonly tool: string;
  readonly input: JsonObject | undefined;
  /** What each hook did then, by checkpoint and name. */
  readonly hooks: ReadonlyMap<string, TurnHook>;
}

export const hookKey = (checkpoint: string, name: string): string => `${checkpoint} ${name}`;

/** What happened at the bar `id` of a turn; nothing where no hooks are asked at such a bar. Pure. */
export function pastOf({ turn, spans }: TurnDetail, id: string): Past | undefined {
  const span = spans.find((one) => one.id === id);
  if (span === undefined) {
    return undefined;
  }
  const isBeside = (one: TurnSpan): boolean => one.kind === "checkpoint" && one.round === span.round && one.toolCallId === span.toolCallId;
  const beside = span.toolCallId === undefined ? [span] : spans.filter(isBeside);
  const moment = span.kind === "call" ? "call" : momentOf(span.name);
  if (moment === undefined || (span.kind !== "call" && span.kind !== "checkpoint")) {
    return undefined;
  }
  const called = span.call ?? beside.findLast((one) => one.call !== undefined && momentOf(one.name) === moment)?.call;
  const hooks = beside.filter(({ name }) => momentOf(name) === moment).flatMap(({ hooks: own = [] }) => own.map((hook) => [hookKey(hook.checkpoint, hook.name), hook] as const));
  return { moment, agent: turn.agentId, tool: span.tool ?? "", input: called?.arguments as JsonObject | undefined, hooks: new Map(hooks) };
}
