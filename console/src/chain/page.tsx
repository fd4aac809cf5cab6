import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useState } from "react";

import { useTurn } from "../turns/queries.ts";
import { Button } from "../ui/button.tsx";
import { CodeField } from "../ui/code-field.tsx";
import { Field, Input, Select } from "../ui/field.tsx";
import { OtherTenant } from "../ui/other-tenant.tsx";
import { Card, Empty, Page, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { useAgents, useTenants } from "../wire/queries.ts";
import { hasSession } from "../wire/session.ts";
import type { CheckpointName, JsonObject, Params } from "../wire/types.ts";
import { useIsElsewhere, useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { ChoosePast } from "./choose-past.tsx";
import { ALL_MOMENTS, hasTool, MOMENTS, type Moment, type Past, pastOf } from "./moments.ts";
import { type AskedAt, Rows } from "./rows.tsx";

const FIRST_INPUT = '{\n  "command": "git push --force"\n}';

/** What is asked: it stands in the address. */
interface Question {
  readonly moment: Moment;
  readonly agent: string;
  readonly tool: string;
  readonly input: string;
}

function questionIn(search: Readonly<Record<string, string | undefined>>): Question | undefined {
  const moment = ALL_MOMENTS.find((one) => one === search["moment"]);
  return moment === undefined ? undefined : { moment, agent: search["agent"] ?? "", tool: search["tool"] ?? "", input: search["input"] ?? "" };
}

const questionOf = ({ moment, agent, tool, input }: Past): Question => ({ moment, agent, tool, input: input === undefined ? "" : JSON.stringify(input, null, 2) });

/** Who would be asked about an event, in which order, and who not and why; also about one that happened. */
export function ChainPage() {
  const words = useWords().chain;
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const { turn, row } = search;
  if (turn !== undefined && row !== undefined) {
    return <FromPast key={`${turn} ${row}`} turn={turn} row={row} />;
  }
  const asked = questionIn(search);
  return <Chain asked={asked} past={undefined} about={words.about} />;
}

/** The question that an event of a turn is. */
function FromPast({ turn, row }: { turn: string; row: string }) {
  const words = useWords();
  const found = useTurn(turn);
  const whose = found.data?.turn.turn.tenantId;
  const isElsewhere = useIsElsewhere(whose);
  if (found.data === undefined) {
    return <Page>{found.error === null ? <p className="text-muted">{words.turns.loading}</p> : <Problem error={found.error} retry={() => void found.refetch()} />}</Page>;
  }
  // Who would be asked is known of the own tenant alone.
  if (isElsewhere && whose !== undefined) {
    return (
      <Page>
        <PageHead title={words.chain.title} above={<PastLink turn={turn} row={row} />} answer={words.chain.about} />
        <OtherTenant id={whose} />
      </Page>
    );
  }
  const past = pastOf(found.data.turn, row);
  if (past === undefined) {
    return (
      <Page>
        <Empty isPage title={words.chain.noEvent}>
          <Link to="/turns/$id" params={{ id: turn }} className="text-accent underline">
            {words.chat.openTurn}
          </Link>
        </Empty>
      </Page>
    );
  }
  return <Chain asked={questionOf(past)} past={past} about={words.chain.about} above={<PastLink turn={turn} row={row} />} />;
}

/** Leads to what is asked about, in its turn. */
function PastLink({ turn, row }: { turn: string; row: string }) {
  return (
    <Link to="/turns/$id" params={{ id: turn }} search={{ row } as never}>
      {useWords().chain.past}
    </Link>
  );
}

/** The arguments as they were written; nothing for none. Throws what is wrong with them. */
function read(text: string): JsonObject | undefined {
  if (text.trim() === "") {
    return undefined;
  }
  const value: unknown = JSON.parse(text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

function useChain(asked: Question | undefined): ReturnType<typeof useQuery<readonly AskedAt[]>> {
  const { connection } = useWire();
  return useQuery({
    queryKey: ["hooks", "chain", asked],
    queryFn: async (): Promise<readonly AskedAt[]> => {
      const { moment, agent, tool, input } = asked as Question;
      const toolInput = hasTool(moment) ? read(input) : undefined;
      const of = (event: CheckpointName): Params<"hooks.chain"> => ({ event, ...(agent === "" ? {} : { agentId: agent }), ...(hasTool(moment) && tool !== "" ? { toolName: tool, ...(toolInput === undefined ? {} : { toolInput }) } : {}) });
      return Promise.all(MOMENTS[moment].map(async (event) => ({ event, ...(await connection.request("hooks.chain", of(event))) })));
    },
    enabled: asked !== undefined,
    retry: false,
  });
}

/** In which tenant it is asked: an owner goes to another one, and asks there. */
function TenantChoice() {
  const words = useWords().chain;
  const { me, goTo } = useWire();
  const may = useMay("owner") && hasSession();
  const open = (useTenants().data ?? []).filter(({ enabled }) => enabled);
  const go = useMutation({ mutationFn: goTo });
  return may && open.length > 1 ? (
    <Field label={words.tenantLabel} hint={words.tenantHint}>
      {(about) => (
        <>
          <Select {...about} value={me.tenant_slug} disabled={go.isPending} onChange={(change) => go.mutate(change.target.value)}>
            {open.map(({ id, slug, name }) => (
              <option key={id} value={slug}>
                {name || slug}
              </option>
            ))}
          </Select>
          {go.error !== null && <Problem error={go.error} />}
        </>
      )}
    </Field>
  ) : (
    <p className="text-muted">{words.tenant(me.tenant_name || me.tenant_slug)}</p>
  );
}

function Chain({ asked, past, about, above }: { asked: Question | undefined; past: Past | undefined; about: string; above?: ReactNode }) {
  const words = useWords();
  const navigate = useNavigate();
  const agents = useAgents().data ?? [];
  const [moment, setMoment] = useState<Moment>(asked?.moment ?? "call");
  const [agent, setAgent] = useState(asked?.agent ?? "");
  const [tool, setTool] = useState(asked?.tool ?? "exec");
  const [input, setInput] = useState(asked?.input ?? FIRST_INPUT);
  const [bad, setBad] = useState<string>();
  const chain = useChain(asked);
  const ask = (submitted: FormEvent): void => {
    submitted.preventDefault();
    setBad(undefined);
    try {
      if (hasTool(moment) && input.trim() !== "" && read(input) === undefined) {
        setBad(words.test.notObject);
        return;
      }
    } catch (error) {
      setBad(words.test.notJson(error instanceof Error ? error.message : ""));
      return;
    }
    const about = hasTool(moment) ? { tool, input } : {};
    void navigate({ to: "/chain", search: { moment, ...(agent === "" ? {} : { agent }), ...about } as never, replace: true });
    if (asked !== undefined) {
      void chain.refetch();
    }
  };
  const all = (chain.data ?? []).flatMap((at) => [...at.chain, ...at.configured]);
  return (
    <Page>
      <PageHead title={words.chain.title} above={above} answer={chain.data === undefined ? about : words.chain.answer(all.filter((row) => row.wouldRun).length, all.length)} />
      <div className="grid grid-cols-[320px_minmax(0,1fr)] items-start gap-6 max-lg:grid-cols-1">
        <Card className="p-4">
          <form className="flex flex-col gap-3" onSubmit={ask}>
            <TenantChoice />
            <ChoosePast wanted={({ row }) => row !== undefined} choose={({ turn, row }) => void navigate({ to: "/chain", search: { turn, row } as never })} />
            <Field label={words.hooks.fields.event}>
              {(about) => (
                <Select {...about} value={moment} onChange={(change) => setMoment(ALL_MOMENTS.find((one) => one === change.target.value) ?? moment)}>
                  {ALL_MOMENTS.map((one) => (
                    <option key={one} value={one}>
                      {words.chain.moments[one]}
                    </option>
                  ))}
                </Select>
              )}
            </Field>
            <Field label={words.chain.agent}>
              {(about) => (
                <Select {...about} value={agent} onChange={(change) => setAgent(change.target.value)}>
                  <option value="">{words.chain.firstAgent}</option>
                  {[...new Set([...agents.map(({ id }) => id), ...(agent === "" ? [] : [agent])])].map((id) => (
                    <option key={id}>{id}</option>
                  ))}
                </Select>
              )}
            </Field>
            {hasTool(moment) && (
              <>
                <Field label={words.test.tool}>{(about) => <Input {...about} className="font-mono" value={tool} onChange={(change) => setTool(change.target.value)} />}</Field>
                <CodeField language="json" label={words.test.input} value={input} onChange={setInput} error={bad} />
              </>
            )}
            <div>
              <Button look="primary" type="submit" disabled={chain.isFetching}>
                {words.chain.ask}
              </Button>
            </div>
          </form>
        </Card>
        <div aria-live="polite" className="min-w-0">
          {chain.error !== null && <Problem error={chain.error} />}
          {asked === undefined && <Empty title={words.chain.choose}>{words.chain.chooseAbout}</Empty>}
          {chain.data !== undefined && (all.length === 0 ? <Empty title={words.chain.nobody}>{words.chain.nobodyAbout}</Empty> : <Rows all={chain.data} past={past} />)}
        </div>
      </div>
    </Page>
  );
}
