import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useId, useState } from "react";

import { ChoosePast } from "../chain/choose-past.tsx";
import type { PastEvent } from "../chain/past.ts";
import { Button } from "../ui/button.tsx";
import { CodeField } from "../ui/code-field.tsx";
import { JsonDiff } from "../ui/diff.tsx";
import { ExactBox } from "../ui/exact.tsx";
import { Area, Field, Input } from "../ui/field.tsx";
import { Name } from "../ui/name.tsx";
import { Card } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { SaidText } from "../ui/said-text.tsx";
import { Sign } from "../ui/sign.tsx";
import type { CheckpointName, HandlerType, HookInput, HookTestResult, JsonObject, SampleEvent } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { causeOf, causeOfTest } from "../advice/advice.ts";
import { AdviceNote } from "../advice/advice-note.tsx";
import { isTyped, skeletonOf, toolOf } from "./skeletons.ts";
import { ANY_EVENT, type TryOut } from "./templates.ts";

interface Sample {
  readonly input: JsonObject;
  readonly text: string;
}

/** The tools that hooks can be asked about here. */
function useTools(): readonly string[] {
  const { connection } = useWire();
  return useQuery({ queryKey: ["check", "tools"], queryFn: async () => (await connection.request("hooks.check", {})).tools, staleTime: Infinity }).data ?? [];
}

/** Runs a hook with an event that is made up, or that happened: the handler for real, nothing recorded. */
export function TestPanel({ event, handler, matcher = "", what, first = ANY_EVENT }: { event: CheckpointName; handler: HandlerType; matcher?: string; what: () => { config: HookInput } | { hookId: string }; first?: TryOut }) {
  const words = useWords().test;
  const { connection } = useWire();
  const queries = useQueryClient();
  const hasTool = event === "pre_tool_use" || event === "post_tool_use" || event === "subagent_start" || event === "subagent_stop";
  const [tool, setTool] = useState(() => toolOf(matcher));
  const inputOf = (one: TryOut): string => (one.input === ANY_EVENT.input ? skeletonOf(tool) : one.input);
  const [input, setInput] = useState(() => inputOf(first));
  const [text, setText] = useState(first.text);
  // An event that nobody touched goes with the template that it is of.
  const [began, setBegan] = useState(first);
  if (first.input !== began.input || first.text !== began.text) {
    setBegan(first);
    setInput(input === inputOf(began) ? inputOf(first) : input);
    setText(text === began.text ? first.text : text);
  }
  const [bad, setBad] = useState<string>();
  const tools = useTools();
  const list = useId();
  const chooseTool = (to: string): void => {
    setTool(to);
    // What somebody typed stays; what was only there to begin with makes room.
    if (tools.includes(to) && !isTyped(input)) {
      setInput(skeletonOf(to));
    }
  };
  const take = (past: PastEvent): void => {
    if (past.moment === "message") {
      setText(past.text ?? "");
    } else {
      setTool(past.tool);
      setInput(JSON.stringify(past.input, null, 2));
    }
  };
  const test = useMutation({
    mutationFn: async (sample: Sample): Promise<{ result: HookTestResult; sample: Sample; isSaved: boolean }> => {
      const sampleEvent: SampleEvent = hasTool ? { toolName: tool, toolInput: sample.input } : { rawInput: sample.text };
      const tested = what();
      const { result } = await connection.request("hooks.test", { ...tested, sampleEvent, dryRun: true });
      return { result, sample, isSaved: "hookId" in tested };
    },
    // What is saved is proven by its answer. Nobody waits for the sign that says so.
    onSuccess: ({ isSaved }) => {
      if (isSaved) {
        void queries.invalidateQueries({ queryKey: ["hooks", "list"] });
      }
    },
  });
  const run = (): void => {
    setBad(undefined);
    try {
      const read: unknown = hasTool ? JSON.parse(input) : {};
      if (typeof read !== "object" || read === null || Array.isArray(read)) {
        setBad(words.notObject);
        return;
      }
      test.mutate({ input: read as JsonObject, text });
    } catch (error) {
      setBad(words.notJson(error instanceof Error ? error.message : ""));
    }
  };
  return (
    <Card className="p-4">
      <h2 className="font-semibold">{words.title}</h2>
      <p className="mb-3 text-small text-muted">{handler === "prompt" ? words.aboutPrompt : words.about}</p>
      <div className="flex flex-col gap-3">
        {(hasTool || event === "user_prompt_submit") && <ChoosePast wanted={({ moment }) => moment === (hasTool ? "call" : "message")} choose={take} />}
        {hasTool ? (
          <>
            <Field label={words.tool} hint={words.toolHint}>
              {(about) => <Input {...about} list={list} className="font-mono" value={tool} onChange={(change) => chooseTool(change.target.value)} />}
            </Field>
            <datalist id={list}>
              {tools.map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
            <CodeField language="json" label={words.input} value={input} onChange={setInput} error={bad} />
          </>
        ) : (
          <Field label={words.text}>{(about) => <Area {...about} rows={3} value={text} onChange={(change) => setText(change.target.value)} />}</Field>
        )}
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <Button look="primary" disabled={test.isPending} onClick={run}>
            {words.run}
          </Button>
          {handler === "prompt" && <span className="text-small text-muted">{words.spends}</span>}
        </div>
      </div>
      <div aria-live="polite">
        {test.error !== null && (
          <>
            <Problem error={test.error} />
            <AdviceNote cause={causeOf(test.error.message)} />
          </>
        )}
        {test.data !== undefined && test.error === null && <Result result={test.data.result} sample={test.data.sample} hasTool={hasTool} />}
      </div>
    </Card>
  );
}

function Result({ result, sample, hasTool }: { result: HookTestResult; sample: Sample; hasTool: boolean }) {
  const all = useWords();
  const words = all.test;
  const facts: readonly (readonly [string, ReactNode])[] = [
    [words.duration, `${result.durationMs} ms`],
    [words.effective, all.decisions[result.effective]],
    [words.matcher, result.matcherMatched ? words.matched : words.notMatched],
    [words.condition, result.celError ?? (result.celResult === undefined ? undefined : result.celResult ? words.isTrue : words.isFalse)],
    [words.status, result.statusCode],
    [words.error, result.error],
    [words.kind, result.fault === undefined ? undefined : (all.turns.faults[result.fault as keyof typeof all.turns.faults] ?? result.fault)],
    [words.injection, result.injectionDetected === undefined ? undefined : result.injectionDetected ? words.yes : words.no],
    [words.model, result.model],
    [words.tokens, result.tokens],
    [words.context, result.additionalContext],
  ];
  return (
    <div className="mt-4 flex flex-col gap-2" data-testid="result">
      <p className="flex flex-wrap items-center gap-2">
        <Sign kind={result.decision} word={all.decisions[result.decision]} />
        <span className="font-semibold">
          <SaidText text={result.reason ?? ""} />
        </span>
      </p>
      <AdviceNote cause={causeOfTest(result)} />
      {result.warnings?.map((warning) => (
        <p key={warning} className="text-ask">
          <SaidText text={warning} />
        </p>
      ))}
      <dl className="grid grid-cols-[128px_1fr] gap-x-3 gap-y-0.5">
        {facts
          .filter(([, value]) => value !== undefined)
          .map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-muted">{name}</dt>
              <dd className="min-w-0 whitespace-pre-wrap">{typeof value === "string" ? <Name of={value} /> : value}</dd>
            </div>
          ))}
      </dl>
      <Output name={words.stdout} text={result.stdout} />
      <Output name={words.stderr} text={result.stderr} />
      {result.updatedInput !== undefined && (
        <>
          <p className="font-medium">{result.rewrite === "applied" ? words.wouldApply : words.wouldNotApply(result.rewrite ?? "")}</p>
          <JsonDiff before={hasTool ? sample.input : { rawInput: sample.text }} after={result.updatedInput} titles={[words.before, words.after]} label={words.diff} />
        </>
      )}
    </div>
  );
}

function Output({ name, text }: { name: string; text: string | undefined }) {
  if (text === undefined || text === "") {
    return null;
  }
  return (
    <div>
      <p className="text-muted">{name}</p>
      <ExactBox text={text} label={name} className="max-h-48 bg-raised p-2" />
    </div>
  );
}
