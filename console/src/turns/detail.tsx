import { Link } from "@tanstack/react-router";

import { DiffHead, JsonDiff } from "../ui/diff.tsx";
import { Sign } from "../ui/sign.tsx";
import { took } from "../ui/took.ts";
import { useIsElsewhere } from "../wire/use-wire.ts";
import { useLanguage, useWords } from "../words/use-words.ts";
import { HookLink } from "../ui/hook-link.tsx";
import { Name } from "../ui/name.tsx";
import { SaidText } from "../ui/said-text.tsx";
import { Box, type Fact, Facts } from "./box.tsx";
import { changedPlaces } from "./change.ts";
import { amount } from "./cost.ts";
import { LetThrough } from "./let-through.tsx";
import { OpenAsTest } from "./open-as-test.tsx";
import { argumentsOf, faultLine, nameOf, signWord, whySkipped } from "./said.ts";
import type { TurnExecution, TurnHook, TurnLine, TurnSpan } from "../wire/types.ts";
import { Seen } from "./seen.tsx";
import { sides } from "./sides.ts";
import { deciding, type Row, signOfHook } from "./view.ts";
import { Wrote } from "./wrote.tsx";

/** All that is kept of the row that is chosen. */
export function Detail({ row, turn }: { row: Row; turn: TurnLine }) {
  const words = useWords();
  const { name, isCode } = nameOf(row, words.turns);
  return (
    <section aria-label={words.turns.detail} className="min-w-0" data-testid="detail">
      <h2 className="mb-2 flex flex-wrap items-center gap-2 text-large font-semibold">
        <span className={isCode ? "min-w-0 font-mono" : "min-w-0"}><Name of={name} /></span>
        {row.sign !== undefined && row.sign !== "off" && <Sign kind={row.sign} word={signWord(row, words)} />}
      </h2>
      <Of row={row} turn={turn} />
    </section>
  );
}

function Of({ row, turn }: { row: Row; turn: TurnLine }) {
  const words = useWords().turns;
  const { of } = row;
  // What would run now is asked in the tenant itself.
  const isElsewhere = useIsElsewhere(turn.tenantId);
  switch (of.kind) {
    case "round":
    case "tool":
      return <Facts facts={[[words.took, took(row.took)]]} />;
    case "model":
      return (
        <>
          <Facts
            facts={[
              [words.modelName, of.span.model],
              [words.took, took(row.took)],
              [words.account.tokens, of.span.usage === undefined ? undefined : words.modelsCost(of.span.usage.prompt_tokens, of.span.usage.completion_tokens)],
              [words.account.cost, of.span.costUsd === undefined ? undefined : words.money(amount(of.span.costUsd), true)],
            ]}
          />
          <Box title={words.answerText} value={of.span.content} />
          <Seen turnId={row.turnId} round={of.span.round} />
        </>
      );
    case "call":
      return (
        <>
          <Call span={of.span} decided={of.decided} ms={row.took} />
          {!isElsewhere && <NowQuestion turnId={row.turnId} span={of.span} />}
        </>
      );
    case "checkpoint":
      return (
        <>
          <Checkpoint span={of.span} />
          {!isElsewhere && <NowQuestion turnId={row.turnId} span={of.span} />}
        </>
      );
    case "hook":
      return <Hook hook={of.hook} span={of.span} beside={of.beside} turn={turn} turnId={row.turnId} />;
    case "skipped":
      return (
        <ul className="flex flex-col gap-2">
          {of.hooks.map((hook, at) => (
            <li key={at}>
              <span className="font-medium"><Name of={hook.name} /></span> <span className="text-muted">{whySkipped(hook, words)}</span>
            </li>
          ))}
        </ul>
      );
    case "turn":
      return (
        <>
          <p className="mb-2 whitespace-pre-wrap"><Name of={of.detail.turn.prompt ?? ""} /></p>
          <Link to="/turns/$id" params={{ id: of.detail.turn.turnId }} className="text-accent underline">
            {words.openChild}
          </Link>
        </>
      );
  }
}

/** Leads to what hooks would do about the same event now. */
function NowQuestion({ turnId, span }: { turnId: string; span: TurnSpan }) {
  return (
    <p className="mt-3">
      <Link to="/chain" search={{ turn: turnId, row: span.id } as never} className="text-accent underline">
        {useWords().turns.nowQuestion}
      </Link>
    </p>
  );
}

const code = (text: string | undefined) => (text === undefined ? undefined : <code>{text}</code>);

function Call({ span, decided, ms }: { span: TurnSpan; decided: TurnSpan | undefined; ms: number }) {
  const { turns: words, colon } = useWords();
  const by = decided === undefined ? undefined : deciding(decided);
  const stopped = by !== undefined && ["block", "ask"].includes(signOfHook(by));
  return (
    <>
      {stopped && (
        <p className="mb-2">
          <HookLink id={by.execution?.hookId} name={by.name} />
          {by.reason !== undefined && colon}
          <SaidText text={by.reason ?? ""} />
        </p>
      )}
      <Facts
        facts={[
          [words.took, took(ms)],
          [words.callId, code(span.toolCallId)],
          [words.permit, code(decided?.permit)],
          [words.digest, code(span.digest)],
          [words.answered, decided?.answeredByHook === true ? words.byHook : undefined],
        ]}
      />
      <Box title={words.input} value={argumentsOf(decided?.call)} />
      <Box title={span.isError === true ? words.failedResult : words.result} value={span.result} />
    </>
  );
}

function Checkpoint({ span }: { span: TurnSpan }) {
  const words = useWords().turns;
  return (
    <>
      <Facts
        facts={[
          [words.ruling, words.verdicts[span.ruling as keyof typeof words.verdicts] ?? span.ruling],
          [words.said, span.text === undefined ? undefined : <SaidText text={span.text} />],
          [words.answered, span.answeredByHook === true ? words.byHook : undefined],
          [words.permit, code(span.permit)],
          [words.eventId, code(span.eventId)],
        ]}
      />
      <Box title={words.input} value={argumentsOf(span.call)} />
    </>
  );
}

interface HookAt {
  readonly hook: TurnHook;
  readonly span: TurnSpan;
  readonly beside: readonly TurnSpan[];
  readonly turn: TurnLine;
  readonly turnId: string;
}

function Hook({ hook, span, beside, turn, turnId }: HookAt) {
  const { turns: words, colon } = useWords();
  const language = useLanguage();
  const isElsewhere = useIsElsewhere(turn.tenantId);
  const both = sides(beside, hook, words.notKept);
  const isRequest = span.name === "before_llm";
  const places = both === undefined && !isRequest ? changedPlaces(hook.change) : [];
  const { execution } = hook;
  const id = execution?.hookId ?? undefined;
  const facts: readonly Fact[] = [
    [words.verdict, hook.verdict === undefined ? undefined : (words.verdicts[hook.verdict as keyof typeof words.verdicts] ?? hook.verdict)],
    [words.fault, hook.fault === undefined ? undefined : faultLine(hook, words.faults[hook.fault as keyof typeof words.faults] ?? hook.fault, colon)],
    [words.reason, hook.ran && hook.reason !== undefined ? <SaidText text={hook.reason} /> : undefined],
    [words.notRunWhy, hook.ran || hook.fault !== undefined ? undefined : whySkipped(hook, words)],
    [words.pattern, code(hook.compared?.pattern)],
    [words.comparedWith, code(hook.compared?.value)],
    [words.took, hook.durationMs === null ? undefined : took(hook.durationMs)],
    [words.waited, hook.slotWaitMs === undefined ? undefined : took(hook.slotWaitMs)],
    [words.again, hook.again === true ? words.againWhy : undefined],
    [words.family, words.families[hook.family as keyof typeof words.families] ?? hook.family],
    [words.checkpoint, code(hook.checkpoint)],
    ...(execution === undefined ? [] : executionFacts(execution, words, language)),
    [words.warnings, hook.warnings?.join("\n")],
    [words.dropped, hook.dropped?.join("\n")],
  ];
  return (
    <>
      <Facts facts={facts} />
      <p className="mt-2 flex flex-wrap gap-3">
        {id !== undefined && (
          <Link to="/hooks/$id" params={{ id }} className="text-accent underline">
            {words.openHook}
          </Link>
        )}
        {id === undefined && hook.family !== "agent" && (
          <Link to="/hooks/configured/$family/$name" params={{ family: hook.family, name: hook.name }} className="text-accent underline">
            {words.openHook}
          </Link>
        )}
        {execution !== undefined && (
          <Link to="/executions/$id" params={{ id: execution.id }} className="text-accent underline">
            {words.openExecution}
          </Link>
        )}
        {!isElsewhere && (
          <Link to="/chain" search={{ turn: turnId, row: span.id } as never} className="text-accent underline">
            {words.nowQuestion}
          </Link>
        )}
      </p>
      {execution !== undefined && <Wrote key={execution.id} execution={execution} />}
      {!isElsewhere && <LetThrough hook={hook} span={span} turn={turn} />}
      {both !== undefined && (
        <div className="mt-3">
          <p className="mb-1 font-medium">{words.changed}</p>
          <p className="mb-1 text-muted">{words.beforeNotKept}</p>
          <JsonDiff before={both.before} after={both.after} titles={[words.given, words.left]} label={words.changed} />
        </div>
      )}
      {isRequest && hook.change !== undefined && <Seen turnId={turnId} round={span.round} />}
      {places.length > 0 && (
        <table className="mt-3 w-full table-fixed border-collapse rounded border border-line font-mono" aria-label={words.changed}>
          <DiffHead titles={[words.place, words.after]} />
          <tbody>
            {places.map(({ place, how, value }, at) => (
              <tr key={at}>
                <td className="border border-line px-2 align-top"><Name of={place} /></td>
                <td className={`border border-line px-2 align-top whitespace-pre-wrap ${how === "remove" ? "bg-block-bg" : "bg-allow-bg"}`}>{how === "remove" ? words.removed : value === undefined ? words.onlyPlace : <Name of={value} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Box title={words.input} value={argumentsOf(span.call)} />
      {hook.ran && <OpenAsTest hook={hook} span={span} prompt={turn.prompt} />}
    </>
  );
}

function executionFacts(execution: TurnExecution, words: ReturnType<typeof useWords>["turns"], language: string): readonly Fact[] {
  const bytes = (n: number | undefined): string | undefined => (n === undefined || n === 0 ? undefined : words.bytes(n));
  return [
    [words.account.handler, execution.handlerType],
    [words.account.version, String(execution.version)],
    [words.account.status, execution.httpStatus === undefined ? undefined : String(execution.httpStatus)],
    [words.account.error, execution.error],
    [words.account.stdout, bytes(execution.stdoutBytes)],
    [words.account.stderr, bytes(execution.stderrBytes)],
    [words.account.model, execution.model],
    [words.account.tokens, execution.tokens?.toLocaleString(language)],
    [words.account.cached, execution.cached === true ? words.yes : undefined],
    [words.account.rewrite, execution.rewrite],
  ];
}
