import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";

import { Answer, StateWord } from "../approvals/answer.tsx";
import { CallView } from "../approvals/call-view.tsx";
import { useTurn } from "../turns/queries.ts";
import { deniedBy, noteOfPerson, signWord, whyBlocked } from "../turns/said.ts";
import { Button } from "../ui/button.tsx";
import { clsx } from "../ui/clsx.ts";
import { ExactBox, ExactProse, ExactText } from "../ui/exact.tsx";
import { HookLink } from "../ui/hook-link.tsx";
import { Name } from "../ui/name.tsx";
import { Problem } from "../ui/problem.tsx";
import { SaidText } from "../ui/said-text.tsx";
import { Sign } from "../ui/sign.tsx";
import { took } from "../ui/took.ts";
import type { Approval } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { Files } from "./files.tsx";
import type { Blocked, Item } from "./transcript.ts";
import { outcomeOf } from "./outcome.ts";
import { hooksOf } from "./turn-hooks.ts";

const MarkdownText = lazy(() => import("../ui/markdown.tsx"));

type Of<K extends Item["kind"]> = Extract<Item, { kind: K }>;

/** One thing that stands in a conversation. */
export function ItemView({ item, sessionKey, turn, edit, mayEdit }: { item: Item; sessionKey: string; turn: string | undefined; edit: Edit | undefined; mayEdit: boolean }) {
  switch (item.kind) {
    case "asked":
      return <Asked item={item} edit={edit} mayEdit={mayEdit} />;
    case "files":
      return <Files references={item.media} />;
    case "steered":
      return <Steered item={item} />;
    case "note":
      return <Note item={item} />;
    case "answer":
      return <AnswerText item={item} />;
    case "call":
      return <Call item={item} turn={turn} sessionKey={sessionKey} />;
    case "approval":
      return <Waits item={item} />;
    case "blocked":
      return <BlockedMessage item={item} turn={turn} sessionKey={sessionKey} />;
    case "failed":
      return <Problem error={new Error(item.error)} />;
    case "stopped":
      return <Stopped />;
  }
}

const YOURS = "ml-[20%] self-end rounded-md bg-raised px-3 py-2 whitespace-pre-wrap max-sm:ml-8";

/** Begins to say a message anew: its place, its text, its files. */
type Edit = (place: number, text: string, media: readonly string[]) => void;

/** The button keeps its place while it cannot be used: a conversation does not jump whenever a turn begins or ends. */
function Asked({ item, edit, mayEdit }: { item: Of<"asked">; edit: Edit | undefined; mayEdit: boolean }) {
  const words = useWords().chat;
  const { place, text, media = [] } = item;
  const isEditable = mayEdit && place !== undefined;
  return (
    <>
      <div className={clsx(YOURS, "mt-3")} data-kind="asked">
        <ExactProse text={text} />
        {media.length > 0 && <Files references={media} />}
      </div>
      {edit !== undefined && (
        <Button look="quiet" className={clsx("self-end text-small", !isEditable && "invisible")} aria-label={words.editNamed(text.slice(0, 60))} onClick={() => place !== undefined && edit(place, text, media)}>
          {words.edit}
        </Button>
      )}
      {item.runId !== undefined && item.later !== true && <TurnHooks runId={item.runId} />}
    </>
  );
}

/** What hooks did in a turn, folded: all families, as the page of the turn has them. */
function TurnHooks({ runId }: { runId: string }) {
  const words = useWords();
  const [open, setOpen] = useState(false);
  const found = useTurn(runId, open);
  const did = found.data === undefined ? undefined : hooksOf(found.data);
  return (
    <details className="max-w-full self-end text-small" data-turn={runId} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="text-right text-muted">{words.chat.turnHooks}</summary>
      {found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {did !== undefined && did.rows.length === 0 && <p className="text-muted">{did.skipped === 0 ? words.chat.noHooks : words.chat.noneRan(did.skipped)}</p>}
      <p className="text-right">
        <Link to="/turns/$id" params={{ id: runId }} className="text-accent underline">
          {words.chat.openTurn}
        </Link>
      </p>
      <ol>
        {did?.rows.map((row) => (
          <li key={row.id} className="flex flex-wrap items-center gap-2 py-0.5">
            <Sign kind={row.sign ?? "off"} word={signWord(row, words)} />
            <Link to="/turns/$id" params={{ id: runId }} search={{ row: row.id } as never} className="font-medium text-accent underline">
              <Name of={row.of.hook.name} />
            </Link>
            <code><Name of={row.of.span.tool ?? row.of.span.name} /></code>
            <span className="text-muted">{took(row.took)}</span>
          </li>
        ))}
      </ol>
      {did !== undefined && did.more > 0 && <p className="text-muted">{words.chat.moreHooks(did.more)}</p>}
      {did !== undefined && did.rows.length > 0 && did.skipped > 0 && <p className="text-muted">{words.turns.notRun(did.skipped)}</p>}
      {found.data?.turn.truncated === true && <p className="text-ask">{words.turns.truncated}</p>}
    </details>
  );
}

function Steered({ item }: { item: Of<"steered"> }) {
  const words = useWords().chat;
  return (
    <div className={clsx(YOURS, "border border-dashed border-edge")}>
      <p className="text-small text-muted">{words.steered}</p>
      <ExactProse text={item.text} />
    </div>
  );
}

function Note({ item }: { item: Of<"note"> }) {
  const words = useWords().chat;
  return (
    <div className="border-l-3 border-accent px-3 text-muted" data-kind="note">
      <p className="text-small">{item.skill === undefined ? words.hookText : words.skillText(item.skill)}</p>
      <p className="whitespace-pre-wrap">
        <ExactProse text={item.text} />
      </p>
    </div>
  );
}

function AnswerText({ item }: { item: Of<"answer"> }) {
  const words = useWords().chat;
  return (
    <div className="min-w-0" data-kind="answer">
      {item.thinking !== "" && (
        <details className="text-muted">
          <summary className="text-small">{words.thought}</summary>
          <p className="whitespace-pre-wrap">
            <ExactProse text={item.thinking} />
          </p>
        </details>
      )}
      <Suspense
        fallback={
          <p className="whitespace-pre-wrap">
            <ExactProse text={item.text} />
          </p>
        }
      >
        <MarkdownText text={item.text} />
      </Suspense>
    </div>
  );
}

/** Where something stands: in which turn, if that is known, and in which conversation. */
interface Place {
  readonly turn: string | undefined;
  readonly sessionKey: string;
}


/** A call of a tool: what was asked for, and what came of it. */
function Call({ item, turn, sessionKey }: { item: Of<"call"> } & Place) {
  const words = useWords().chat;
  const [kind, outcome] = outcomeOf(item);
  const word = words[outcome];
  const head = item.input?.["command"] ?? item.input?.["cmd"] ?? item.input?.["path"] ?? "";
  return (
    <div className={clsx("rounded-md border border-line bg-surface px-3 py-1.5", item.blocked !== undefined && "border-l-3 border-l-block")} data-kind="call">
      <details>
        <summary className="flex items-center gap-2">
          <Sign kind={kind} word={word} />
          <code className="font-semibold"><Name of={item.name} /></code>
          <code className="truncate text-muted">
            <ExactText text={typeof head === "string" ? head : ""} />
          </code>
          {item.agent !== undefined && <span className="ml-auto text-small text-muted"><Name of={item.agent} /></span>}
        </summary>
        <div className="mt-2 flex flex-col gap-2">
          {item.input !== undefined && <CallView tool={item.name} input={item.input} />}
          {item.result !== undefined && (
            <ExactBox text={item.result} label={words.result} className="max-h-80 bg-raised p-2" />
          )}
        </div>
      </details>
      {item.answered !== undefined && <Answered approval={item.answered} failed={outcome === "approvedFailed"} />}
      {/* A refusal by a person says more than the refusal that the agent read. */}
      {item.blocked !== undefined && !isRefusedBy(item) && <Why blocked={item.blocked} turn={turn} sessionKey={sessionKey} />}
    </div>
  );
}

const isRefusedBy = ({ answered, blocked }: Of<"call">): boolean => answered?.state === "refused" && blocked?.hookId === null && blocked.name === "";

/** What a person said about a call: yes or no, who, and why. Of one that failed the sign above says both. */
function Answered({ approval, failed }: { approval: Approval; failed: boolean }) {
  const words = useWords();
  return (
    <p className="mt-1 flex flex-wrap items-center gap-x-2" data-testid="answered">
      {!failed && <StateWord approval={approval} />}
      {approval.answered_by !== undefined && <span>{failed ? words.chat.approvedBy(approval.answered_by) : words.approvals.answeredBy(approval.answered_by)}</span>}
      {approval.note !== undefined && approval.note !== "" && (
        <span className="text-muted">
          <SaidText text={approval.note} />
        </span>
      )}
      <Link to="/approvals/$id" params={{ id: approval.id }} className="text-accent underline">
        {words.chat.openApproval}
      </Link>
    </p>
  );
}

function Why({ blocked, turn, sessionKey }: { blocked: Blocked } & Place) {
  const all = useWords();
  const words = all.chat;
  const note = blocked.name === "" ? noteOfPerson(blocked.reason) : undefined;
  const name = blocked.name || (deniedBy(blocked.reason)?.name ?? "");
  const said = note ?? (whyBlocked(blocked.reason, name) || words.noReason);
  return (
    <p className="mt-1">
      {note !== undefined ? (
        <>
          <span className="font-semibold">{all.turns.person}</span>
          {said !== "" && all.colon}
        </>
      ) : (
        (blocked.hookId !== null || name !== "") && (
          <>
            <HookLink id={blocked.hookId} name={name} />
            {all.colon}
          </>
        )
      )}
      <SaidText text={said} />{" "}
      {turn === undefined ? (
        <Link to="/turns" search={{ session: sessionKey } as never} className="text-accent underline">
          {words.openTurns}
        </Link>
      ) : (
        <Link to="/turns/$id" params={{ id: turn }} className="text-accent underline">
          {words.openTurn}
        </Link>
      )}
    </p>
  );
}

function BlockedMessage({ item, turn, sessionKey }: { item: Of<"blocked"> } & Place) {
  const words = useWords().chat;
  return (
    <div role="alert" className="rounded-md border border-l-3 border-line border-l-block bg-surface px-3 py-2" data-kind="blocked">
      <Sign kind="block" word={words.messageBlocked} />
      <Why blocked={item.blocked} turn={turn} sessionKey={sessionKey} />
    </div>
  );
}

/** A call that waits for a person, with the answer beside it for those who may give it. */
function Waits({ item }: { item: Of<"approval"> }) {
  const words = useWords();
  const { connection } = useWire();
  const may = useMay("operator", "operator.approvals");
  const found = useQuery({
    queryKey: ["approvals", "one", item.id],
    queryFn: async () => (await connection.request("approvals.get", { id: item.id })).approval,
    enabled: may,
    retry: false,
  });
  const approval = found.data;
  return (
    <div className={clsx("rounded-md border border-line bg-surface px-3 py-2", item.state === "waiting" && "border-l-3 border-l-ask")} data-kind="approval">
      <p className="mb-1 flex flex-wrap items-center gap-2">
        {item.state === "waiting" && <Sign kind="ask" word={words.chat.waits} />}
        <code className="font-semibold"><Name of={item.tool} /></code>
        {may && (
          <Link to="/approvals/$id" params={{ id: item.id }} className="text-accent underline">
            {words.chat.openApproval}
          </Link>
        )}
      </p>
      {approval === undefined && item.input !== undefined && <CallView tool={item.tool} input={item.input} />}
      {approval === undefined ? (
        item.state === "waiting" && <p className="text-muted">{may && found.error === null ? words.approvals.loading : words.chat.othersAnswer}</p>
      ) : (
        <>
          <CallView tool={approval.tool} input={approval.arguments} />
          <p className="mt-1">
            <span className="font-semibold"><Name of={approval.by} /></span>
            {approval.reason !== "" && words.colon}
            <SaidText text={approval.reason} />
          </p>
          {approval.state === "waiting" && !approval.approvers.you && <p className="mt-1 text-muted">{words.chat.othersAnswer}</p>}
          <Answer approval={approval} />
        </>
      )}
    </div>
  );
}

function Stopped() {
  const words = useWords().chat;
  return <p className="text-muted">{words.stopped}</p>;
}
