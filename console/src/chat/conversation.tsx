import { Link } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";

import { Button } from "../ui/button.tsx";
import { Area } from "../ui/field.tsx";
import { Empty, Page } from "../ui/page.tsx";
import { Name } from "../ui/name.tsx";
import { Problem } from "../ui/problem.tsx";
import { clsx } from "../ui/clsx.ts";
import { isMissing } from "../wire/missing.ts";
import { useApprovals, useSessions } from "../wire/queries.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { withoutWaiting, withUnknownWaiting } from "./calls.ts";
import { useFile } from "./files.tsx";
import { ItemView } from "./items.tsx";
import { sizeOf, TAKEN } from "./media.ts";
import { MAX_MESSAGE_CHARS, tooLong } from "./message-bound.ts";
import { isOthers, keptKey, parts, shownKey } from "./session-key.ts";
import { turnOf } from "./transcript.ts";
import { type Conversation, useConversation } from "./use-conversation.ts";
import type { AttachedFile } from "./use-files.ts";
import { useFollow } from "./use-follow.ts";
import { useKnown } from "./use-known.ts";

/** One conversation. */
export function ConversationView({ sessionKey }: { sessionKey: string }) {
  const words = useWords().chat;
  const { me } = useWire();
  const mayTalk = useMay("operator", "operator.write") && !isOthers(sessionKey, me.user_id);
  const mayAnswer = useMay("operator", "operator.approvals");
  const conversation = useConversation(sessionKey, mayTalk);
  const { transcript, unreadable } = conversation;
  const known = useKnown(sessionKey, transcript.items);
  const { place, onScroll, toEnd } = useFollow();
  const approvals = (useApprovals(false).data ?? []).filter((one) => one.sessionKey !== undefined && shownKey(one.sessionKey, me.user_id) === sessionKey);
  const session = useSessions().data?.find(({ key }) => key === sessionKey);
  // What began to wait before somebody looked here.
  const heard = new Set(transcript.items.map((item) => (item.kind === "approval" ? item.id : "")));
  const waiting = approvals.filter(({ id }) => !heard.has(id));
  const isKnown = waiting.length > 0 || transcript.items.some((item) => item.kind === "approval" && item.state === "waiting");
  // Whoever may see no approvals, and came later, is told no more than that there is one.
  const isToldOnly = !isKnown && !mayAnswer && transcript.running && (session?.waiting ?? 0) > 0;
  const waits = isKnown || isToldOnly;
  const items = isToldOnly ? withUnknownWaiting(known) : withoutWaiting(known, approvals);
  const activity = waits ? "approval" : transcript.activity;
  const named = parts(sessionKey);
  const label = session?.label;
  if (isMissing(unreadable)) {
    return (
      <Page>
        <Empty isPage title={words.notFound}>
          {words.notFoundAbout} <Link to="/chat">{words.title}</Link>
        </Empty>
      </Page>
    );
  }
  return (
    <div className="flex min-h-0 min-w-0 flex-col">
      <header className="flex flex-wrap items-center gap-x-3 border-b border-line px-6 py-2 max-sm:px-4">
        <Link to="/chat" className="text-accent underline lg:hidden">
          {words.conversations}
        </Link>
        <h1 className="mr-auto min-w-0 truncate font-semibold">
          <Name of={label || (named?.conversation ?? "")} /> <span className="font-normal text-muted">{named !== undefined && <Name of={named.agent} />}</span>
        </h1>
        <Link to="/turns" search={{ session: sessionKey } as never} className="text-accent underline">
          {words.turns}
        </Link>
        <Link to="/executions" search={{ session: keptKey(sessionKey, me.user_id) } as never} className="text-accent underline">
          {words.whatHooksDid}
        </Link>
      </header>
      <div
        ref={place}
        tabIndex={0}
        role="log"
        aria-label={words.said}
        className="min-h-0 flex-1 overflow-y-auto [scrollbar-gutter:stable_both-edges] -outline-offset-2!"
        onScroll={onScroll}
      >
        <div className="mx-auto flex max-w-190 flex-col gap-2 px-6 py-4 max-sm:px-4">
          {unreadable !== null && <Problem error={unreadable} />}
          {transcript.items.length === 0 && unreadable === null && <p className="text-muted">{words.empty}</p>}
          {items.map((item, at) => (
            <ItemView key={at} item={item} sessionKey={sessionKey} turn={turnOf(items, at)} edit={mayTalk ? conversation.edit : undefined} mayEdit={!transcript.running} />
          ))}
          {waiting.map(({ id, tool }) => (
            <ItemView key={id} item={{ kind: "approval", id, tool, state: "waiting" }} sessionKey={sessionKey} turn={undefined} edit={undefined} mayEdit={false} />
          ))}
          {transcript.running && transcript.resumed === true && <p className="border-l-3 border-ask px-3 text-muted">{words.resumed}</p>}
          <p role="status" className="min-h-5 text-small text-muted">
            {transcript.running && (words.activities[activity as keyof typeof words.activities] ?? words.activities.thinking)}
          </p>
        </div>
      </div>
      {mayTalk ? <Composer conversation={conversation} waits={waits} onSend={toEnd} /> : <p className="border-t border-line px-6 py-3 text-muted">{words.readOnly}</p>}
    </div>
  );
}

function Composer({ conversation, waits, onSend }: { conversation: Conversation; waits: boolean; onSend: () => void }) {
  const { chat: words, hooks } = useWords();
  const { draft, setDraft, files, editing, overtaken, keep, sending, send: sendIt, stop, transcript, error } = conversation;
  const field = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const about = useId();
  const [over, setOver] = useState(false);
  const isOnItsWay = files.all.some(({ reference }) => reference === undefined);
  // What is too long is told, and nothing of it is cut off.
  const length = tooLong(draft);
  // Nothing is said into a turn that waits for a person: the server takes an answer or a stop, and nothing else.
  const isHeld = transcript.running && waits;
  const can = draft.trim() !== "" && length === undefined && !isOnItsWay && !isHeld && !(sending && !transcript.running);
  const send = (): void => {
    sendIt();
    onSend();
  };
  // Files go with a message that begins a turn, not into one that is under way.
  const mayAttach = !transcript.running;
  useEffect(() => {
    // Where fingers type, the keyboard would cover what was said.
    if (editing || !matchMedia("(pointer: coarse)").matches) {
      field.current?.focus({ preventScroll: true });
    }
  }, [editing]);
  const keys = (event: KeyboardEvent): void => {
    // Enter also ends the choice of a character where one writes Chinese.
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      if (can) {
        send();
      }
    }
  };
  return (
    <div
      className={clsx("overflow-hidden border-t border-line [scrollbar-gutter:stable_both-edges]", over && "bg-tint")}
      onDragOver={(event) => {
        if (mayAttach && event.dataTransfer.types.includes("Files")) {
          event.preventDefault();
          setOver(true);
        }
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        setOver(false);
        if (mayAttach && event.dataTransfer.files.length > 0) {
          event.preventDefault();
          files.add(event.dataTransfer.files);
        }
      }}
    >
      <div className="mx-auto max-w-190 px-6 py-3 max-sm:px-4">
        {error !== undefined && <Problem error={error} />}
        {overtaken && (
          <p role="alert" className="mb-2 border-l-3 border-ask px-3">
            {words.wentOn}
          </p>
        )}
        {editing && (
          <p className="mb-2 flex flex-wrap items-center gap-x-3 border-l-3 border-ask px-3" role="status">
            <span className="mr-auto">{words.editing}</span>
            <Button look="quiet" onClick={keep}>
              {words.keep}
            </Button>
          </p>
        )}
        {files.all.length > 0 && <Attached all={files.all} remove={files.remove} />}
        <Area
          ref={field}
          rows={2}
          spellCheck
          aria-label={transcript.running ? words.steerLabel : words.message}
          placeholder={transcript.running ? words.steerLabel : words.message}
          aria-invalid={length !== undefined || undefined}
          value={draft}
          onChange={(event) => setDraft(event.target.value)}
          onKeyDown={keys}
          onPaste={(event) => {
            if (mayAttach && event.clipboardData.files.length > 0) {
              event.preventDefault();
              files.add(event.clipboardData.files);
            }
          }}
        />
        {length !== undefined && (
          <p role="alert" className="mt-1 text-small text-block">
            {hooks.reasonLong(MAX_MESSAGE_CHARS, length)}
          </p>
        )}
        <input
          ref={chooser}
          type="file"
          multiple
          hidden
          accept={TAKEN}
          aria-label={words.files.attach}
          onChange={(event) => {
            files.add(event.target.files ?? []);
            event.target.value = "";
          }}
        />
        <div className="mt-2 flex items-center gap-2 max-sm:flex-wrap">
          <Button disabled={!mayAttach} title={mayAttach ? undefined : words.files.notNow} onClick={() => chooser.current?.click()}>
            {words.files.attach}
          </Button>
          <span id={about} className={clsx("mr-auto text-small text-muted", isHeld ? "max-sm:order-first max-sm:w-full" : "max-sm:hidden")}>
            {isHeld ? words.answerFirst : words.keys}
          </span>
          {transcript.running && (
            <Button look="danger" onClick={stop}>
              {words.stop}
            </Button>
          )}
          <Button look="primary" disabled={!can} aria-describedby={isHeld ? about : undefined} onClick={send} className="max-sm:ml-auto">
            {transcript.running ? words.steer : words.send}
          </Button>
        </div>
      </div>
    </div>
  );
}

/** The files beside a message that is being written. */
function Attached({ all, remove }: { all: readonly AttachedFile[]; remove: (key: number) => void }) {
  return (
    <ul aria-label={useWords().chat.files.title} className="mb-2 flex flex-wrap gap-2">
      {all.map((file) => (
        <AttachedView key={file.key} file={file} remove={() => remove(file.key)} />
      ))}
    </ul>
  );
}

function AttachedView({ file: { name, bytes, reference, error }, remove }: { file: AttachedFile; remove: () => void }) {
  const words = useWords().chat.files;
  // One that came with a message is known by its reference alone.
  const known = useFile(name === "" ? reference : undefined);
  const shown = name || known?.name || words.noName;
  const size = bytes || known?.bytes;
  return (
    <li className="max-w-full rounded border border-line bg-surface px-2 py-1 text-small" data-attached={reference === undefined ? "on its way" : "kept"}>
      <span className="flex flex-wrap items-center gap-x-2">
        <span className="wrap-anywhere">{shown}</span>
        <span className="text-muted">{error !== undefined ? words.refused : reference === undefined ? words.sending : size !== undefined && sizeOf(size)}</span>
        <Button look="quiet" aria-label={words.removeNamed(shown)} onClick={remove}>
          {words.remove}
        </Button>
      </span>
      {error !== undefined && <Problem error={error} />}
    </li>
  );
}
