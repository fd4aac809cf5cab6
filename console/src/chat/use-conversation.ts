import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useReducer, useRef, useState } from "react";

import { RequestError } from "../wire/client.ts";
import { kindOf } from "../wire/kind.ts";
import type { HookFrame, RunEvent, ShownMessage } from "../wire/types.ts";
import { useEvent, useWire } from "../wire/use-wire.ts";
import { wentOn } from "./edited.ts";
import { draftPlace, dropDraft, keepDraft, keptDraft } from "./kept-draft.ts";
import { EMPTY, fromHistory, heard, missed, noted, steered, tells, type Transcript, unkept, upTo, withMedia } from "./transcript.ts";
import { type AttachedFiles, useFiles } from "./use-files.ts";

type Change =
  | { readonly kind: "kept"; readonly messages: readonly ShownMessage[]; readonly goesOn: boolean }
  | { readonly kind: "missed" }
  | { readonly kind: "status"; readonly running: boolean; readonly runId: string | null; readonly activity: string | null; readonly resumed: boolean }
  | { readonly kind: "event"; readonly event: RunEvent }
  | { readonly kind: "edited"; readonly place: number }
  | { readonly kind: "files"; readonly media: readonly string[] }
  | { readonly kind: "note"; readonly frame: HookFrame }
  | { readonly kind: "steered"; readonly text: string };

function changed(before: Transcript, change: Change): Transcript {
  switch (change.kind) {
    case "kept": {
      const after = fromHistory(change.messages, before);
      return { ...after, items: [...after.items, ...unkept(before, after.items, change.goesOn)] };
    }
    case "missed":
      return missed(before);
    case "status":
      return { ...before, running: change.running, runId: change.runId ?? before.runId, activity: change.activity ?? before.activity, resumed: change.resumed };
    case "event":
      return heard(before, change.event);
    case "edited":
      return upTo(before, change.place);
    case "files":
      return withMedia(before, change.media);
    case "note":
      return noted(before, change.frame);
    case "steered":
      return steered(before, change.text);
  }
}

/** What comes of a message that is kept by then. */
const AFTER_MESSAGE = ["tool.call", "approval.waiting"];

const ENDS = ["run.completed", "run.failed", "run.cancelled"];

export interface Conversation {
  readonly transcript: Transcript;
  /** Why it cannot be read. */
  readonly unreadable: unknown;
  /** What is typed: it stays until the message was taken or blocked. */
  readonly draft: string;
  readonly setDraft: (draft: string) => void;
  readonly files: AttachedFiles;
  /** Whether an earlier message is said anew. */
  readonly editing: boolean;
  /** Whether the conversation went on while an earlier message was edited: what is typed replaces nothing any more. */
  readonly overtaken: boolean;
  /** Begins to say a message anew. */
  readonly edit: (place: number, text: string, media: readonly string[]) => void;
  readonly keep: () => void;
  readonly sending: boolean;
  readonly error: unknown;
  readonly send: () => void;
  readonly stop: () => void;
}

/** One conversation: what is kept of it, and what happens in it. */
export function useConversation(key: string, mayBegin: boolean): Conversation {
  const { connection, me } = useWire();
  const queries = useQueryClient();
  const [transcript, change] = useReducer(changed, EMPTY);
  // What was typed comes back after a session ended, and when somebody comes back to the conversation.
  const place = draftPlace(me, key);
  const [before] = useState(() => keptDraft(place));
  const [draft, setDraft] = useState(before?.text ?? "");
  const [sending, setSending] = useState(false);
  const [error, setError] = useState<unknown>();
  const [edited, setEdited] = useState(before?.edited);
  const [overtaken, setOvertaken] = useState(false);
  // Whether a message of this page is on its way that begins a run.
  const begins = useRef(false);
  const files = useFiles(before?.media);
  const kept = useQuery({
    queryKey: ["conversation", key],
    queryFn: async () => {
      try {
        const [{ messages }, status] = await Promise.all([
          connection.request("chat.history", { sessionKey: key }),
          connection.request("chat.session.status", { sessionKey: key }),
        ]);
        return { messages, status };
      } catch (failed) {
        // One's own begins with its first message; what is no address of one never does.
        if (mayBegin && failed instanceof RequestError && failed.code === "NOT_FOUND") {
          return { messages: [], status: { isRunning: false, runId: null, activity: null } };
        }
        throw failed;
      }
    },
    staleTime: Infinity,
    gcTime: 0,
  });
  const { data, refetch } = kept;
  const handed = files.all.flatMap(({ reference }) => reference ?? []);
  const handedText = handed.join(" ");
  useEffect(() => keepDraft(place, { text: draft, edited, media: handedText === "" ? [] : handedText.split(" ") }), [place, draft, edited, handedText]);
  useEffect(() => {
    if (data !== undefined) {
      change({ kind: "kept", messages: data.messages, goesOn: data.status.isRunning });
      change({ kind: "status", running: data.status.isRunning, runId: data.status.runId, activity: data.status.activity?.phase ?? null, resumed: data.status.resumed === true });
    }
  }, [data]);
  const interrupted = (): void => change({ kind: "missed" });
  useEvent("reconnected", interrupted);
  useEvent("gap", interrupted);
  useEvent("hook", (frame) => {
    if (frame.sessionKey === key) {
      change({ kind: "note", frame });
    }
  });
  useEvent("agent", (event) => {
    if (event.sessionKey !== key) {
      return;
    }
    const isOver = event.type === "run.started" || (event.type === "hook.blocked" && event.payload.toolCallId === undefined);
    const isOwn = event.type === "run.started" && sending && event.delegationId === undefined;
    // What follows a message that is said anew is gone once its gates let it pass.
    if (isOwn && edited !== undefined) {
      change({ kind: "edited", place: edited.place });
    }
    change({ kind: "event", event });
    if (isOwn && handed.length > 0) {
      change({ kind: "files", media: handed });
    }
    if (isOver && begins.current) {
      begins.current = false;
      setDraft("");
      files.clear();
      setEdited(undefined);
      setSending(false);
    } else if (event.type === "run.started" && edited !== undefined) {
      // Somebody else was faster: what is typed stays, and replaces nothing any more.
      setEdited(undefined);
      setOvertaken(true);
    }
    // Whoever came after the message was taken and before it was kept has not read it.
    if (AFTER_MESSAGE.includes(event.type) && event.delegationId === undefined && !tells(transcript.items, event.runId)) {
      void refetch();
    }
    if (event.type === "approval.waiting" || event.type === "approval.decided") {
      // How many wait stands with the conversation: of approvals alone not everybody is told.
      void queries.invalidateQueries({ queryKey: ["sessions"] });
    }
    if (ENDS.includes(event.type)) {
      void refetch();
      void queries.invalidateQueries({ queryKey: ["sessions"] });
      void queries.invalidateQueries({ queryKey: ["turns"] });
      // A call that was approved has run now.
      void queries.invalidateQueries({ queryKey: ["approvals"] });
    }
  });
  const send = useCallback(() => {
    const message = draft;
    setError(undefined);
    setOvertaken(false);
    setSending(true);
    const over = (): void => {
      begins.current = false;
      setSending(false);
    };
    const failed = (why: unknown): void => {
      setError(why);
      over();
    };
    if (transcript.running) {
      connection.request("chat.inject", { sessionKey: key, message }).then(() => {
        dropDraft(place, message);
        change({ kind: "steered", text: message });
        setDraft("");
        setSending(false);
      }, failed);
      return;
    }
    const media = files.all.flatMap(({ reference }) => reference ?? []);
    begins.current = true;
    const edits = edited === undefined ? {} : { edits: edited };
    connection.request("chat.send", { sessionKey: key, message, stream: true, ...edits, ...(media.length === 0 ? {} : { media }) }).then(
      () => {
        // Also where somebody went to another page meanwhile.
        dropDraft(place, message);
        over();
      },
      (why: unknown) => {
        // What a hook stopped is shown where it stands.
        const isShown = kindOf(why) === "hook_blocked";
        // How a turn of this page ended that had begun is told by its own end.
        const isTold = why instanceof RequestError && !begins.current;
        if (isShown) {
          dropDraft(place, message);
          setDraft("");
          files.clear();
          setEdited(undefined);
          over();
        } else if (isTold) {
          over();
        } else if (wentOn(why)) {
          setEdited(undefined);
          setOvertaken(true);
          over();
          void refetch();
        } else {
          failed(why);
          void refetch();
        }
      },
    );
  }, [connection, draft, edited, files, key, place, refetch, transcript.running]);
  const stop = useCallback(() => {
    connection.request("chat.abort", { sessionKey: key }).catch(setError);
  }, [connection, key]);
  const messages = data?.messages;
  const edit = useCallback(
    (place: number, text: string, media: readonly string[]) => {
      setError(undefined);
      setOvertaken(false);
      const at = messages?.[place]?.created_at;
      setEdited(messages === undefined ? undefined : { place, of: messages.length, ...(at === undefined ? {} : { at }) });
      setDraft(text);
      files.put(media);
    },
    [files, messages],
  );
  const keep = useCallback(() => {
    setEdited(undefined);
    setDraft("");
    files.clear();
  }, [files]);
  return { transcript, unreadable: kept.error, draft, setDraft, files, editing: edited !== undefined, overtaken, edit, keep, sending, error, send, stop };
}
