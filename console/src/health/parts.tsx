import { GUARD_SIGNS, useLack } from "../ui/guard-sign.tsx";
import { Name } from "../ui/name.tsx";
import { Sign, type SignKind } from "../ui/sign.tsx";
import { Cell, Row, Table } from "../ui/table.tsx";
import type { Payload } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";

interface Part {
  readonly kind: string;
  readonly name: string;
  readonly good: boolean;
  /** Where it is not just good or bad. */
  readonly sign?: SignKind;
  readonly word: string;
  readonly more: string;
}

/** What the server is made of here: providers, store, children; and the guards that are not proven. Rules that tripped stand
 * with the breakers. */
export function Parts({ health }: { health: Payload<"health.get"> }) {
  const { health: { parts: words }, overview: { guards } } = useWords();
  const line = (...texts: readonly (string | null | false | undefined)[]): string => texts.filter(Boolean).join(" · ");
  const lack = useLack();
  const { store } = health;
  const parts: readonly Part[] = [
    ...health.guards.notArmed
      .filter(({ hookId, state }) => hookId === null || state !== "tripped")
      .map(({ name, state, step, why }) => ({ kind: words.guard, name, good: false, sign: GUARD_SIGNS[state], word: guards[state], more: lack(step, why) })),
    { kind: words.store, name: store.kind, good: store.ok, word: store.ok ? words.good : words.bad, more: line(words.answered(store.answeredMs), store.error) },
    ...health.providers.map(({ name, ok, error, url }) => ({ kind: words.provider, name, good: ok, word: ok ? words.good : words.bad, more: line(url, error) })),
    ...health.processHooks.map(({ name, state, restarts, why, lastStderr }) => ({ kind: words.processHook, name, good: state === "up", word: words.states[state], more: line(words.restarts(restarts), why, lastStderr) })),
    ...health.mcpServers.map(({ name, state, restarts, tools, why, lastStderr }) => ({ kind: words.mcp, name, good: state === "up", word: words.states[state], more: line(words.tools(tools), words.restarts(restarts), why, lastStderr) })),
    ...health.skills.map(({ name, code, why }) => ({ kind: words.skill, name, good: false, word: words.bad, more: line(why ?? words.notIn, code) })),
  ];
  return (
    <div className="mt-6">
      <h2 className="mb-2 text-large font-semibold">{words.title}</h2>
      <Table label={words.title} head={[words.part, words.kind, words.state, words.more]}>
        {parts.map((one, at) => (
          <Row key={at} name={one.name}>
            <Cell>
              <span className="font-semibold"><Name of={one.name} /></span>
            </Cell>
            <Cell name={words.kind}>{one.kind}</Cell>
            <Cell name={words.state}>
              <Sign kind={one.sign ?? (one.good ? "allow" : "error")} word={one.word} />
            </Cell>
            <Cell name={words.more}>
              <Name of={one.more} />
            </Cell>
          </Row>
        ))}
      </Table>
    </div>
  );
}
