import type { ReactNode } from "react";

import { ExactText } from "../ui/exact.tsx";
import { Sign } from "../ui/sign.tsx";
import type { ShellFacts as Facts } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";

/** What is known of a command before it runs: its programs, what it touches, and what nobody can know. */
export function ShellFacts({ facts }: { facts: Facts }) {
  const words = useWords().approvals.shell;
  const commands = facts.commands.map(({ argv, name, cwd }) => ({ text: argv.length === 0 ? name : argv.join(" "), cwd })).filter(({ text }) => text.trim() !== "");
  const lists: readonly (readonly [string, readonly string[]])[] = [
    [words.deletes, facts.deletes],
    [words.writes, facts.writes],
    [words.reads, facts.reads],
    [words.urls, facts.urls],
    [words.outside, facts.outside],
  ];
  return (
    <div data-testid="shell-facts">
      <p className="mb-1 flex flex-wrap gap-2 empty:hidden">
        {facts.unknown && <Sign kind="ask" word={words.unknown} />}
        {facts.pipes_to_interpreter && <Sign kind="block" word={words.pipes} />}
        {facts.outside.length > 0 && <Sign kind="ask" word={words.leaves} />}
      </p>
      {facts.unknown_why !== "" && <p className="mb-1 text-muted">{facts.unknown_why}</p>}
      <dl className="grid grid-cols-[112px_minmax(0,1fr)] gap-x-3 gap-y-0.5">
        {commands.length > 0 && (
          <Fact name={words.runs}>
            {commands.map(({ text, cwd }, at) => (
              <code key={at} className="block" title={cwd === "" ? words.anywhere : words.in(cwd)}>
                <ExactText text={text} />
              </code>
            ))}
          </Fact>
        )}
        {lists
          .filter(([, paths]) => paths.length > 0)
          .map(([name, paths]) => (
            <Fact key={name} name={name}>
              {paths.map((path) => (
                <code key={path} className="block">
                  <ExactText text={path} />
                </code>
              ))}
            </Fact>
          ))}
      </dl>
    </div>
  );
}

const Fact = ({ name, children }: { name: string; children: ReactNode }) => (
  <div className="contents">
    <dt className="text-muted">{name}</dt>
    <dd className="min-w-0">{children}</dd>
  </div>
);
