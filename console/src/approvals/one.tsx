import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";

import { Beyond } from "../ui/beyond.tsx";
import { ofTenants } from "../ui/every-tenant.ts";
import { JsonDiff } from "../ui/diff.tsx";
import { HookLink } from "../ui/hook-link.tsx";
import { OtherTenant } from "../ui/other-tenant.tsx";
import { Card, Empty, Page, PageHead } from "../ui/page.tsx";
import { ExactText } from "../ui/exact.tsx";
import { Problem } from "../ui/problem.tsx";
import { SaidText } from "../ui/said-text.tsx";
import { Timed } from "../ui/when.tsx";
import { type Refusal, refusalBefore } from "../turns/exception.ts";
import { useTurn } from "../turns/queries.ts";
import { isMissing } from "../wire/missing.ts";
import { useHooks } from "../wire/queries.ts";
import type { Approval } from "../wire/types.ts";
import { useIsElsewhere, useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { Answer, StateWord } from "./answer.tsx";
import { CallView } from "./call-view.tsx";
import { isOpen, whoMay } from "./parts.ts";
import { ShellFacts } from "./shell-facts.tsx";

/** How often an approval is looked at that may still change, in milliseconds. */
const LOOK_EVERY_MS = 2_000;

export function ApprovalPage() {
  const words = useWords().approvals;
  const { id } = useParams({ strict: false }) as { id: string };
  const { connection } = useWire();
  const may = useMay("operator", "operator.approvals");
  const isOfRole = useMay("operator");
  const found = useQuery({
    enabled: may,
    queryKey: ["approvals", "one", id],
    queryFn: async () => (await connection.request("approvals.get", { id })).approval,
    // Of a call that has run, or that may not any more, the server tells nobody.
    refetchInterval: ({ state: { data } }) => (data !== undefined && isOpen(data.state) ? LOOK_EVERY_MS : false),
  });
  if (found.data !== undefined) {
    return <One key={id} approval={found.data} />;
  }
  if (isOfRole && !may) {
    return <Beyond scope="operator.approvals" />;
  }
  // Whoever may see no approval sees none, whether it is there or not.
  const isGone = !may || isMissing(found.error);
  return (
    <Page>
      {isGone && <Empty title={words.notFound}>{words.notFoundAbout}</Empty>}
      {!isGone && found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {!isGone && found.isPending && <p className="text-muted">{words.loading}</p>}
    </Page>
  );
}

/** Where a call would run: by whom, in which folder, in which shell, on which server. */
function Place({ approval: { agent_id: agent, subAgent, place } }: { approval: Approval }) {
  const words = useWords().approvals;
  const server = place?.server;
  const facts: readonly (readonly [string, string | undefined])[] = [
    [words.place.workspace, place?.workspace],
    [words.place.shell, place?.shell],
    [words.place.server, server === undefined ? undefined : `${server.name}: ${server.runs}`],
    [words.place.digest, server?.digest],
  ];
  return (
    <>
      {subAgent && <p>{words.subAgent(agent)}</p>}
      <dl className="grid grid-cols-[112px_minmax(0,1fr)] gap-x-3" data-testid="place">
        {facts
          .filter(([, value]) => value !== undefined && value !== "")
          .map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-muted">{name}</dt>
              <dd className="min-w-0 wrap-anywhere">
                <code>{value}</code>
              </dd>
            </div>
          ))}
      </dl>
    </>
  );
}

/** What somebody wanted of the agent, in the turn that makes the call; before it, in the turn in which the call was refused. */
function Prompt({ turnId, refused, label }: { turnId: string; refused: Refusal | undefined; label: string }) {
  const words = useWords().approvals;
  const first = useTurn(refused?.turnId ?? "", refused?.turnId !== undefined).data?.turn.turn.prompt ?? null;
  const prompt = useTurn(turnId).data?.turn.turn.prompt ?? null;
  const prompts = [first, prompt].filter((one) => one !== null);
  return prompts.length === 0 ? null : (
    <>
      <h2 className={label}>{words.wanted}</h2>
      {prompts.map((one, at) => (
        <p key={at} className="mb-1 line-clamp-6 border-l-3 border-line pl-3 whitespace-pre-wrap wrap-anywhere"><ExactText text={one} /></p>
      ))}
    </>
  );
}

/** Who refused this very call before, and why: somebody wants it let through once. */
function Refused({ refused: { hookId, turnId, because }, label }: { refused: Refusal; label: string }) {
  const { approvals: words, colon } = useWords();
  const rule = (useHooks().data ?? []).find(({ id }) => id === hookId);
  return (
    <>
      <h2 className={label}>{words.refusedBefore}</h2>
      <p>
        <HookLink name={rule?.name ?? hookId} id={rule === undefined ? null : hookId} />
        {because !== "" && colon}
        <SaidText text={because} />
      </p>
      {turnId !== undefined && (
        <Link to="/turns/$id" params={{ id: turnId }} className="text-accent underline">
          {words.refusedTurn}
        </Link>
      )}
    </>
  );
}

/** Exactly what would run, who asked and why, until when; and the answer. */
function One({ approval }: { approval: Approval }) {
  const { approvals: words, colon } = useWords();
  const label = "mt-4 mb-1 font-medium";
  const who = whoMay(approval.approvers, words);
  const isElsewhere = useIsElsewhere(approval.tenantId);
  const refused = refusalBefore(approval, useHooks().data ?? []);
  return (
    <Page>
      <PageHead
        title={words.heading[approval.state](approval.tool)}
        shown={
          <>
            {words.heading[approval.state](approval.tool)} <StateWord approval={approval} />
          </>
        }
        above={<Link to="/approvals" search={ofTenants(isElsewhere) as never}>{words.title}</Link>}
        answer={
          <>
            <Timed says={(when) => words.who(approval.agent_id, approval.state === "waiting", when)} at={approval.asked_at} />
          </>
        }
      />
      <Card className="max-w-180 p-4">
        <h2 className="mb-1 font-medium">{words.exactly[approval.state](approval.tool)}</h2>
        <CallView tool={approval.tool} input={approval.arguments} />
        {approval.shell !== undefined && (
          <>
            <h2 className={label}>{approval.state === "waiting" ? words.shell.title : words.shell.titleOver}</h2>
            <ShellFacts facts={approval.shell} />
          </>
        )}
        <Prompt turnId={approval.turn_id} refused={refused} label={label} />
        {refused !== undefined && <Refused refused={refused} label={label} />}
        <h2 className={label}>{approval.state === "waiting" ? words.whoAsks : words.whoAsked}</h2>
        <p>
          <HookLink name={approval.by} />
          {approval.reason !== "" && colon}
          <SaidText text={approval.reason} />
        </p>
        {approval.again_because !== undefined && (
          <>
            <h2 className={label}>{words.again}</h2>
            <p>
              <SaidText text={approval.again_because} />
            </p>
          </>
        )}
        {approval.changed_from !== undefined && (
          <>
            <h2 className={label}>{words.before}</h2>
            <JsonDiff before={approval.changed_from} after={approval.arguments} titles={[words.was, words.is]} label={words.before} />
          </>
        )}
        <h2 className={label}>{words.where}</h2>
        <Place approval={approval} />
        {approval.sessionKey !== undefined && (
          <>
            {!isElsewhere && (
              <Link to="/chat/$key" params={{ key: approval.sessionKey }} className="text-accent underline">
                {words.openConversation}
              </Link>
            )}{" "}
            <Link to="/turns/$id" params={{ id: approval.turn_id }} search={{ call: approval.tool_call_id } as never} className="text-accent underline">
              {words.openTurn}
            </Link>
          </>
        )}
        {approval.state === "waiting" && (
          <>
            <h2 className={label}>{words.mayAnswer}</h2>
            <p data-testid="approvers">{approval.approvers.you || isElsewhere ? who : words.both(who, words.notYou)}</p>
          </>
        )}
        {isElsewhere && approval.tenantId !== undefined && <OtherTenant id={approval.tenantId} />}
        <Answer approval={approval} />
      </Card>
    </Page>
  );
}
