/**
 * What a front end does with what it hears, and what it sends back.
 *
 * Everything waits in one queue until it is played, texts of skills among it, so that all keeps its place; what was
 * played becomes history when it is flushed. Nothing here changes a value that it was given, and nothing does any IO.
 */

/** Who speaks in a message. */
export type Role = "system" | "user" | "assistant" | "tool";

/** A call of a tool, as it stands in a message of the model. */
export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

/** One message as a front end keeps it, and sends it back. Members that begin with `_` reach no hook and no model. */
export interface Kept {
  readonly role: Role;
  readonly content: string;
  readonly tool_calls?: readonly ToolCall[];
  readonly tool_call_id?: string;
  /** The hook that it is a text of. */
  readonly _hook?: string;
  /** The skill that brought it. */
  readonly _skill?: string;
  /** The host's signature on it. */
  readonly _sig?: string;
}

/** A piece of an answer. Whatever else stands in it, such as sound, comes back when it is played. */
export interface TextPiece {
  readonly type: "text";
  readonly content: string;
  readonly [more: string]: unknown;
}

/** A text of a skill that stays. It is neither shown nor spoken. Members that are not named here are ignored. */
export interface HookFrame {
  readonly type: "hook";
  readonly name: string;
  readonly role: "system" | "user";
  readonly content: string;
  readonly skill?: string;
  readonly sig?: string;
  readonly [more: string]: unknown;
}

/** One thing that a front end hears, in the order in which it was said. */
export type Heard = TextPiece | HookFrame;

/** All that a front end keeps of one conversation. */
export interface FrontEnd {
  /** What was heard and not played. */
  readonly audioQueue: readonly Heard[];
  /** What was played and is not history yet. */
  readonly historySegments: readonly Heard[];
  /** What is sent back with the next request. */
  readonly conversationHistory: readonly Kept[];
}

/** What playing the next piece came to. */
export interface Played {
  readonly state: FrontEnd;
  /** What is to be shown or spoken: empty for a text of a skill, undefined where the queue was empty. */
  readonly text: string | undefined;
  /** The piece itself, undefined where the queue was empty. */
  readonly piece: Heard | undefined;
}

/** A front end that has kept `conversationHistory`; none for a conversation that begins, or was cleared. */
export function frontEnd(conversationHistory: readonly Kept[] = []): FrontEnd {
  return { audioQueue: [], historySegments: [], conversationHistory };
}

/**
 * A request began: `text` and `sig` are those of `run.started`, never what was typed. What is still there of an earlier
 * request is history first.
 */
export function asked(state: FrontEnd, text: string, sig?: string): FrontEnd {
  const stopped = stop(state);
  const message: Kept = { role: "user", content: text, ...(sig ? { _sig: sig } : {}) };
  return { ...stopped, conversationHistory: [...stopped.conversationHistory, message] };
}

/** Something was heard: it waits for its turn. */
export function heard(state: FrontEnd, piece: Heard): FrontEnd {
  return { ...state, audioQueue: [...state.audioQueue, piece] };
}

/** Takes the next piece off the queue. */
export function playNextAudio(state: FrontEnd): Played {
  const [piece, ...audioQueue] = state.audioQueue;
  if (piece === undefined) {
    return { state, text: undefined, piece: undefined };
  }
  const text = piece.type === "text" ? piece.content : "";
  return { state: { ...state, audioQueue, historySegments: [...state.historySegments, piece] }, text, piece };
}

/**
 * What was played becomes history: at the end of a round, at the end, and at a stop. Pieces of text that stand together
 * become one message; a text of a skill is a border between them.
 */
export function flushHistorySegments(state: FrontEnd): FrontEnd {
  const flushed: Kept[] = [];
  let open = "";
  const close = (): void => {
    if (open !== "") {
      flushed.push({ role: "assistant", content: open });
      open = "";
    }
  };
  for (const segment of state.historySegments) {
    if (segment.type === "text") {
      open += segment.content;
    } else {
      close();
      flushed.push(keptHook(segment));
    }
  }
  close();
  return { ...state, historySegments: [], conversationHistory: [...state.conversationHistory, ...flushed] };
}

function keptHook(frame: HookFrame): Kept {
  const { name, role, content, skill, sig } = frame;
  return { role, content, _hook: name, ...(skill ? { _skill: skill } : {}), ...(sig ? { _sig: sig } : {}) };
}

/** The request was stopped or failed: what was played is history, what was not is lost. */
export function stop(state: FrontEnd): FrontEnd {
  return { ...flushHistorySegments(state), audioQueue: [] };
}

/**
 * The request that the message at `place` began is deleted or made again: everything up to the next message of the
 * user's goes, texts of skills among it, and with `itsMessage` the message, too. Nothing happens where no message of the
 * user's stands.
 */
export function takeBack(state: FrontEnd, place: number, itsMessage: boolean): FrontEnd {
  const history = state.conversationHistory;
  if (!isAsked(history[place])) {
    return state;
  }
  const later = history.findIndex((kept, at) => at > place && isAsked(kept));
  const end = later === -1 ? history.length : later;
  const conversationHistory = [...history.slice(0, itsMessage ? place : place + 1), ...history.slice(end)];
  return { ...state, conversationHistory };
}

function isAsked(kept: Kept | undefined): boolean {
  return kept !== undefined && kept.role === "user" && kept._hook === undefined;
}
