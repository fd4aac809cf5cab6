import { Link, useParams } from "@tanstack/react-router";

import { GuardSign, useLack } from "../ui/guard-sign.tsx";
import { Name } from "../ui/name.tsx";
import { Card, Empty, Page, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { Cell, Row, Table } from "../ui/table.tsx";
import { took } from "../ui/took.ts";
import { When } from "../ui/when.tsx";
import { useConfigured, useProofs } from "../wire/queries.ts";
import type { ConfiguredHook } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";
import { useLately } from "./lately.ts";
import { didLately } from "./state.ts";

/** A hook of the configuration, or a text of a skill: it is read here, and changed where it stands. */
export function ConfiguredHookPage() {
  const words = useWords();
  const { family, name } = useParams({ strict: false }) as { family: string; name: string };
  const found = useConfigured();
  useProofs();
  const own = (found.data ?? []).filter((hook) => hook.family === family && hook.name === name);
  const [first] = own;
  if (first !== undefined) {
    return <One first={first} own={own} />;
  }
  return (
    <Page>
      {found.data !== undefined && (
        <Empty isPage title={words.hooks.notFound}>
          {words.rules.configured.notFoundAbout} <Link to="/hooks">{words.hooks.title}</Link>
        </Empty>
      )}
      {found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.isPending && <p className="text-muted">{words.hooks.loading}</p>}
    </Page>
  );
}

function One({ first, own }: { first: ConfiguredHook; own: readonly ConfiguredHook[] }) {
  const words = useWords();
  const { configured } = words.rules;
  const did = useLately().data;
  const lack = useLack()(first.step, first.why);
  const family = words.rules.families[first.family as keyof typeof words.rules.families] ?? first.family;
  const isText = first.family === "skill";
  const facts: readonly (readonly [string, string])[] = [
    [words.turns.family, family],
    [words.hooks.fields.agents, first.agents.length === 0 ? words.rules.everyAgent : first.agents.join(", ")],
    [words.hooks.fields.matcher, first.matcher || words.hooks.everything],
    [configured.stands, first.origin ?? configured.forOwners],
  ];
  return (
    <Page>
      <PageHead
        title={first.name}
        above={<Link to="/hooks">{words.hooks.title}</Link>}
        shown={
          <>
            <Name of={first.name} /> <GuardSign state={first.state} />
          </>
        }
        answer={isText ? configured.text : configured.about(own.length)}
      />
      {lack !== "" && <p className="mb-3 text-ask wrap-anywhere">{lack}</p>}
      <Card className="mb-4 p-4">
        <dl className="grid grid-cols-[144px_minmax(0,1fr)] gap-x-3 gap-y-1">
          {facts.map(([title, value]) => (
            <div key={title} className="contents">
              <dt className="text-muted">{title}</dt>
              <dd className="min-w-0 wrap-anywhere">{value}</dd>
            </div>
          ))}
        </dl>
      </Card>
      <Table label={configured.where} head={[words.hooks.fields.event, words.hooks.fields.priority, words.hooks.fields.timeLimit, configured.onFailure, words.hooks.lastRun, words.hooks.blocks, words.hooks.p95]}>
        {own.map((hook) => {
          const lately = didLately(did ?? new Map(), hook);
          return (
            <Row key={hook.event} name={hook.event}>
              <Cell>
                <code>{hook.event}</code>
              </Cell>
              <Cell name={words.hooks.fields.priority}>{hook.priority}</Cell>
              <Cell name={words.hooks.fields.timeLimit}>{hook.timeoutMs === null ? "–" : took(hook.timeoutMs)}</Cell>
              <Cell name={configured.onFailure}>{hook.onFailure ?? "–"}</Cell>
              <Cell name={words.hooks.lastRun}>{lately === undefined || lately.lastAt === null ? "–" : <When at={lately.lastAt} />}</Cell>
              <Cell name={words.hooks.blocks}>{lately === undefined ? "–" : words.hooks.share(lately.blocked, lately.runs)}</Cell>
              <Cell name={words.hooks.p95}>{lately === undefined || lately.p95Ms === null ? "–" : took(lately.p95Ms)}</Cell>
            </Row>
          );
        })}
      </Table>
      <p className="mt-4">
        <Link to="/turns" search={{ hook: first.name } as never} className="text-accent underline">
          {configured.turns}
        </Link>
      </p>
    </Page>
  );
}
