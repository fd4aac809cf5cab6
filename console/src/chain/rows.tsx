import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { whySkipped } from "../turns/said.ts";
import { useLack } from "../ui/guard-sign.tsx";
import { Name } from "../ui/name.tsx";
import { Card } from "../ui/page.tsx";
import { Sign, type SignKind } from "../ui/sign.tsx";
import type { ChainLine, CheckpointName, ConfiguredChainLine, TurnHook } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";
import { hookKey, type Past } from "./moments.ts";
import { whyNot } from "./why-not.ts";

/** Who would be asked at one checkpoint. */
export interface AskedAt {
  readonly event: CheckpointName;
  readonly chain: readonly ChainLine[];
  readonly configured: readonly ConfiguredChainLine[];
}

/** All families, checkpoint by checkpoint, in the order in which they run. */
export function Rows({ all, past }: { all: readonly AskedAt[]; past: Past | undefined }) {
  const words = useWords().chain;
  return (
    <Card className="overflow-hidden">
      {all.map(({ event, chain, configured }, place) => {
        const earlier = all.slice(0, place).reduce((sum, at) => sum + at.chain.length + at.configured.length, 0);
        const before = configured.filter(({ runs }) => runs === "before");
        const after = configured.filter(({ runs }) => runs === "after");
        const lines = [...before, ...chain, ...after];
        return (
          <section key={event} aria-label={event} className="border-b border-line last:border-b-0">
            <h2 className="bg-raised px-3 py-0.5 text-small font-normal text-muted">
              <code>{event}</code>
              {lines.length === 0 && ` · ${words.nobodyHere}`}
            </h2>
            <ol start={earlier + 1}>
              {lines.map((line, at) => {
                const then = past?.hooks.get(hookKey(event, line.name === "" && "hookId" in line ? line.hookId : line.name));
                return "hookId" in line ? (
                  <RuleLine key={line.hookId} number={earlier + at + 1} line={line} then={past === undefined || isUntold(line, then) ? undefined : <Then hook={then} />} />
                ) : (
                  <ConfiguredLine key={`${line.name} ${line.origin}`} number={earlier + at + 1} line={line} then={past === undefined ? undefined : <Then hook={then} />} />
                );
              })}
            </ol>
          </section>
        );
      })}
    </Card>
  );
}

/** Whether nothing tells what a rule did then: records do not name what is shipped and was off, so nobody knows whether it was there. */
const isUntold = (line: ChainLine, then: TurnHook | undefined): boolean => then === undefined && line.state === "off" && line.scope === "global";

/** What a hook did when the event happened. */
function Then({ hook }: { hook: TurnHook | undefined }) {
  const { chain, turns } = useWords();
  if (hook === undefined) {
    return <>{chain.thenAbsent}</>;
  }
  const { fault, verdict, ran } = hook;
  const said = fault !== undefined ? (turns.faults[fault as keyof typeof turns.faults] ?? fault) : (turns.verdicts[verdict as keyof typeof turns.verdicts] ?? verdict);
  return <>{chain.then(!ran && fault === undefined ? chain.runsNot : (said ?? chain.told), ran ? (hook.reason ?? "") : whySkipped(hook, turns))}</>;
}

function Line({ number, sign, name, about, then }: { number: number; sign: readonly [SignKind, string]; name: ReactNode; about: string; then: ReactNode }) {
  return (
    <li className="grid grid-cols-[24px_112px_minmax(0,1fr)] items-start gap-3 border-t border-line px-3 py-2 max-sm:grid-cols-[24px_minmax(0,1fr)] max-sm:gap-y-1">
      <span className="text-muted">{number}</span>
      <Sign kind={sign[0]} word={sign[1]} />
      <span className="min-w-0 max-sm:col-start-2">
        {name}
        <span className="block text-muted"><Name of={about} /></span>
        {then !== undefined && <span className="block">{then}</span>}
      </span>
    </li>
  );
}

const joined = (parts: readonly string[]): string => parts.filter((part) => part !== "").join(" · ");

function RuleLine({ number, line, then }: { number: number; line: ChainLine; then: ReactNode }) {
  const { chain, hooks, rules } = useWords();
  const kind = line.wouldRun ? "allow" : line.state === "tripped" ? "tripped" : line.state === "broken" ? "error" : "off";
  const name = (
    <Link to="/hooks/$id" params={{ id: line.hookId }} className="font-semibold hover:underline">
      <Name of={line.name || line.hookId} />
    </Link>
  );
  return <Line number={number} sign={[kind, line.wouldRun ? chain.runs : chain.runsNot]} name={name} about={joined([hooks.scopes[line.scope], hooks.priorityOf(line.priority), whyNot(line.reason, rules.whyNot)])} then={then} />;
}

function ConfiguredLine({ number, line, then }: { number: number; line: ConfiguredChainLine; then: ReactNode }) {
  const { chain, rules, hooks } = useWords();
  const lack = useLack()(line.step, line.why);
  const isText = line.family === "skill";
  const cannot = line.wouldRun && (line.state === "broken" || line.state === "unproven");
  const yes = isText ? chain.goesIn : chain.runs;
  const no = isText ? chain.goesNotIn : chain.runsNot;
  const kind: SignKind = !line.wouldRun ? "off" : line.state === "broken" ? "error" : line.state === "unproven" ? "ask" : "allow";
  const family = rules.families[line.family as keyof typeof rules.families] ?? line.family;
  return (
    <Line
      number={number}
      sign={[kind, line.wouldRun ? yes : no]}
      name={<span className="font-semibold wrap-anywhere"><Name of={line.name} /></span>}
      about={joined([family, isText ? "" : hooks.priorityOf(line.priority), whyNot(line.reason, rules.whyNot), cannot ? lack : "", line.origin ?? ""])}
      then={then}
    />
  );
}
