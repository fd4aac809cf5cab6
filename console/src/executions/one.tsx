import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { causeOfExecution } from "../advice/advice.ts";
import { AdviceNote } from "../advice/advice-note.tsx";
import { ofTenants } from "../ui/every-tenant.ts";
import { HookLink } from "../ui/hook-link.tsx";
import { Card, Empty, Page, PageHead } from "../ui/page.tsx";
import { Name } from "../ui/name.tsx";
import { OtherTenant } from "../ui/other-tenant.tsx";
import { Output } from "../ui/output.tsx";
import { Problem } from "../ui/problem.tsx";
import { SaidText } from "../ui/said-text.tsx";
import { Sign } from "../ui/sign.tsx";
import { wholeMs } from "../ui/took.ts";
import { When } from "../ui/when.tsx";
import { isMissing } from "../wire/missing.ts";
import type { Execution, OutputHead } from "../wire/types.ts";
import { useIsElsewhere, useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { knownMember } from "./member.ts";

/** One row: all of it for those who may read it, else what the list has. */
export function ExecutionPage() {
  const words = useWords().executions;
  const { id } = useParams({ strict: false }) as { id: string };
  const { connection } = useWire();
  const mayRead = useMay("admin");
  const found = useQuery({
    queryKey: ["execution", id, mayRead],
    queryFn: async (): Promise<Shown | null> => (mayRead ? await connection.request("hooks.execution.get", { id }) : ((await connection.request("hooks.history", { executionId: id })).executions[0] ?? null)),
  });
  const row = found.data;
  if (row !== undefined && row !== null) {
    return <One row={row} />;
  }
  const isGone = row === null || isMissing(found.error);
  return (
    <Page>
      {isGone && <Empty isPage title={words.notFound}>{mayRead ? words.notFoundAbout : words.notFoundOwn}</Empty>}
      {!isGone && found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {!isGone && found.isPending && <p className="text-muted">{words.loading}</p>}
    </Page>
  );
}

/** The row as the history has it, with the whole error and what its program wrote for those who may read them. */
type Shown = Execution & { readonly errorDetail?: string | null; readonly stdout?: OutputHead | null; readonly stderr?: OutputHead | null };

function One({ row }: { row: Shown }) {
  const all = useWords();
  const words = all.executions;
  const isElsewhere = useIsElsewhere(row.tenant_id);
  const name = row.hook_name || row.hook_id || "";
  const tool = row.tool_name ?? row.event;
  const hook =
    row.hook_id === null ? (
      <>
        <Name of={name} /> ({words.deleted})
      </>
    ) : (
      <HookLink id={row.hook_id} name={name} />
    );
  const facts: readonly (readonly [string, ReactNode])[] = [
    [all.hooks.hook, hook],
    [all.hooks.version, row.hook_version],
    [all.hooks.fields.event, <code key="event">{row.event}</code>],
    [all.test.tool, row.tool_name === null ? null : <code key="tool"><Name of={row.tool_name} /></code>],
    [words.when, <When key="when" at={row.created_at} />],
    [words.took, wholeMs(row.duration_ms)],
    [all.test.error, row.errorDetail ?? row.error],
    [
      words.session,
      row.session_key === null || isElsewhere ? (
        row.session_key
      ) : (
        <Link key="session" to="/chat/$key" params={{ key: row.session_key }} className="text-accent underline">
          <Name of={row.session_key} />
        </Link>
      ),
    ],
    [
      words.turn,
      row.turn_id === null ? null : (
        <Link key="turn" to="/turns/$id" params={{ id: row.turn_id }} search={{ execution: row.id } as never} className="text-accent underline">
          {row.turn_id}
        </Link>
      ),
    ],
    [
      words.trace,
      row.trace_id === null || row.turn_id === null || row.trace_id === row.turn_id ? (
        row.trace_id === row.turn_id ? null : row.trace_id
      ) : (
        <Link key="trace" to="/turns/$id" params={{ id: row.turn_id }} search={{ execution: row.id } as never} className="text-accent underline">
          {row.trace_id}
        </Link>
      ),
    ],
    [words.call, row.tool_call_id],
    [words.inputHash, row.input_hash],
  ];
  const why = row.reason ?? row.error ?? "";
  return (
    <Page>
      <PageHead
        title={`${name}: ${all.decisions[row.decision]}`}
        above={<Link to="/executions" search={ofTenants(isElsewhere) as never}>{words.title}</Link>}
        shown={
          <>
            <Name of={name} /> <Sign kind={row.decision} word={all.decisions[row.decision]} />
          </>
        }
        answer={<SaidText text={words.sentence[row.decision](tool, name, why)} />}
      />
      {isElsewhere && <OtherTenant id={row.tenant_id} />}
      <AdviceNote cause={causeOfExecution(row)} />
      <Card className="p-4">
        <dl className="grid grid-cols-[144px_minmax(0,1fr)] gap-x-3 gap-y-1 max-sm:grid-cols-1">
          {facts
            .filter(([, value]) => value !== null && value !== "" && value !== undefined)
            .map(([title, value]) => (
              <div key={title} className="contents">
                <dt className="text-muted">{title}</dt>
                <dd className="min-w-0 whitespace-pre-wrap">{typeof value === "string" ? <Name of={value} /> : value}</dd>
              </div>
            ))}
          {Object.entries(row.metadata).filter(([name]) => name !== "trace_id").map(([name, value]) => {
            const known = knownMember(name, value, all);
            return (
              <div key={name} className="contents">
                <dt className={known === undefined ? "font-mono text-muted" : "text-muted"}>{known?.title ?? name}</dt>
                <dd className={known === undefined ? "min-w-0 font-mono" : "min-w-0"}><Name of={known?.value ?? (typeof value === "string" ? value : JSON.stringify(value))} /></dd>
              </div>
            );
          })}
        </dl>
        <Output name={all.test.stdout} head={row.stdout} />
        <Output name={all.test.stderr} head={row.stderr} />
      </Card>
    </Page>
  );
}
