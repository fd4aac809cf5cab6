import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Fragment, type ReactNode, useCallback, useMemo, useState } from "react";

import { Button } from "../ui/button.tsx";
import { ofTenants } from "../ui/every-tenant.ts";
import { download } from "../ui/download.ts";
import { useListKeys } from "../ui/list-keys.ts";
import { Name } from "../ui/name.tsx";
import { OtherTenant } from "../ui/other-tenant.tsx";
import { Card, Empty, Page, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { SaidText } from "../ui/said-text.tsx";
import { Sign } from "../ui/sign.tsx";
import { When } from "../ui/when.tsx";
import { took } from "../ui/took.ts";
import { isMissing } from "../wire/missing.ts";
import { useApprovals } from "../wire/queries.ts";
import { useIsElsewhere } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { cost } from "./cost.ts";
import { Detail } from "./detail.tsx";
import { tookOf } from "./line.ts";
import { useTurn } from "./queries.ts";
import { approvedOf, approver, signWith, voidBecause } from "./approved.ts";
import { endOf, noteOfPerson, whyBlocked } from "./said.ts";
import { Tree } from "./tree.tsx";
import { all, counts, type Family, happened, judgeTokens, length, modelTokens, type Row, rowOf, shown, tree } from "./view.ts";

export function TurnPage() {
  const words = useWords().turns;
  const { id } = useParams({ strict: false }) as { id: string };
  const found = useTurn(id);
  if (found.data !== undefined) {
    return <One key={id} family={found.data} />;
  }
  const isGone = isMissing(found.error);
  return (
    <Page>
      {isGone && (
        <Empty isPage title={words.notFound}>
          {words.notFoundAbout} <Link to="/turns">{words.title}</Link>
        </Empty>
      )}
      {!isGone && found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.isPending && <p className="text-muted">{words.loading}</p>}
    </Page>
  );
}

/** The group of skipped hooks that a row is in: it is open where that row is chosen. */
const groupOf = (rows: readonly Row[], id: string | undefined): Row | undefined => (id === undefined ? undefined : all(rows).find(({ of, children }) => of.kind === "skipped" && children.some((child) => child.id === id)));

function One({ family }: { family: Family }) {
  const words = useWords();
  useListKeys();
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const rows = useMemo(() => tree(family), [family]);
  const asked = useMemo(() => search["row"] ?? rowOf(rows, search["execution"], search["call"])?.id, [rows, search]);
  const what = useMemo(() => happened(family, rows), [family, rows]);
  const [turned, setTurned] = useState<ReadonlySet<string>>(() => new Set(groupOf(rows, asked)?.id));
  const list = useMemo(() => shown(rows, turned), [rows, turned]);
  const scale = useMemo(() => length(rows), [rows]);
  const chosen = useMemo(() => {
    const every = all(rows);
    return every.find((row) => row.id === asked) ?? every.find((row) => row.id === what.row) ?? every[0];
  }, [rows, asked, what.row]);
  const { turn } = family.turn;
  const { turnId } = turn;
  const choose = useCallback((row: string) => void navigate({ to: "/turns/$id", params: { id: turnId }, search: { row } as never, replace: true, resetScroll: false }), [navigate, turnId]);
  const flip = useCallback((row: string) => {
    setTurned((so) => {
      const next = new Set(so);
      if (!next.delete(row)) {
        next.add(row);
      }
      return next;
    });
  }, []);
  const many = useMemo(() => counts(family), [family]);
  const isElsewhere = useIsElsewhere(turn.tenantId);
  const sign = signWith(turn, useApprovals(true, isElsewhere).data ?? []);
  const tokens = useMemo(() => judgeTokens(family), [family]);
  const own = useMemo(() => modelTokens(family), [family]);
  const money = useMemo(() => cost(family), [family]);
  return (
    <Page wide>
      <PageHead
        title={words.turns.heading(turn.agentId)}
        shown={
          <>
            {words.turns.heading(turn.agentId)} <Sign kind={sign.kind} word={words.turns.states[sign.word]} />
          </>
        }
        above={<Link to="/turns" search={ofTenants(isElsewhere) as never}>{words.turns.title}</Link>}
        answer={
          <span className="text-large text-text">
            <Sentence family={family} what={what} choose={choose} />
          </span>
        }
      />
      <div className="mb-3 flex flex-wrap items-center gap-x-3 gap-y-2 text-muted">
        <When at={turn.startedAt} />
        {turn.userId !== null && <span>{words.turns.whose(turn.userId)}</span>}
        <span>{took(tookOf(turn) ?? family.turn.durationMs)}</span>
        <span>{words.turns.counted(many.calls, many.hooks)}</span>
        {own.read + own.written > 0 && <span>{words.turns.modelsCost(own.read, own.written)}</span>}
        {money !== undefined && <span>{words.turns.money(money.usd, money.isWhole)}</span>}
        {tokens > 0 && <span>{words.turns.judgesCost(tokens)}</span>}
        {family.turn.parentTurnId !== null && (
          <Link to="/turns/$id" params={{ id: family.turn.parentTurnId }} className="text-accent underline">
            {words.turns.openParent}
          </Link>
        )}
        <Actions family={family} />
      </div>
      {isElsewhere && turn.tenantId !== undefined && <OtherTenant id={turn.tenantId} />}
      {turn.prompt !== null && <p className="mb-3 max-w-200 border-l-3 border-line pl-3 text-muted"><Name of={turn.prompt} /></p>}
      {family.turn.truncated && <p className="mb-3 text-ask">{words.turns.truncated}</p>}
      {rows.length === 0 ? (
        <Empty title={words.turns.nothing}>{words.turns.nothingAbout}</Empty>
      ) : (
        <div className="grid grid-cols-[minmax(0,1fr)_minmax(360px,36%)] items-start gap-4 max-lg:grid-cols-1">
          <Card className="overflow-hidden">
            <Tree rows={list} length={scale} chosen={chosen?.id} choose={choose} turn={flip} label={words.turns.parts} />
          </Card>
          <Card className="sticky top-4 max-h-[calc(100dvh-32px)] overflow-y-auto p-4 max-lg:static max-lg:max-h-none">{chosen !== undefined && <Detail key={chosen.id} row={chosen} turn={turn} />}</Card>
        </div>
      )}
    </Page>
  );
}

/** What happened, in one sentence. The hook that it names leads to its row. */
function Sentence({ family, what, choose }: { family: Family; what: ReturnType<typeof happened>; choose: (row: string) => void }) {
  const { turns: words, colon, stop } = useWords();
  const many = counts(family);
  const { turnId, tenantId } = family.turn.turn;
  // What a person refused says so; who it was, approvals know.
  const note = what.hook === "" ? noteOfPerson(what.why) : undefined;
  const approvals = useApprovals(true, useIsElsewhere(tenantId)).data ?? [];
  const refused = approvals.filter((one) => one.turn_id === turnId && one.state === "refused");
  // Of several that were refused nobody knows here which one this is.
  const somebody = note === undefined ? words.somebody : ((refused.length === 1 ? refused[0]?.answered_by : undefined) ?? words.person);
  const said = note ?? (what.kind === "blocked" ? whyBlocked(what.why, what.hook) : what.why);
  const hook: ReactNode =
    what.row === undefined ? (
      <Name of={what.hook} />
    ) : (
      <button type="button" className="inline text-left font-semibold wrap-anywhere text-accent underline" onClick={() => what.row !== undefined && choose(what.row)}>
        <Name of={what.hook === "" ? somebody : what.hook} />
      </button>
    );
  const approvedBy = what.kind === "asked" ? approver(approvedOf(approvals, turnId), what.what) : undefined;
  const { ending } = family.turn.turn;
  const over = what.kind !== "asked" ? "" : ending === "stopped" ? words.thenStopped(voidBecause(approvals, turnId)) : ending === "cut" ? words.plain.cut(0, 0, "") : "";
  const why = said === "" ? stop : `${colon}${said}${endOf(said, stop)}`;
  const { next } = what;
  const more = what.more > 0 && (
    <>
      {" "}
      {next === undefined ? (
        words.more(what.more)
      ) : (
        <button type="button" className="inline text-left text-accent underline" onClick={() => choose(next)}>
          {words.more(what.more)}
        </button>
      )}
    </>
  );
  if (what.kind === "blocked" || what.kind === "asked" || what.kind === "waiting" || what.kind === "faulted") {
    return (
      <>
        {(approvedBy === undefined ? words.sentences[what.kind] : words.approvedBy(approvedBy || words.person)).split(/\{(what|hook)\}/).map((part, at) => (
          <Fragment key={at}>{part === "what" ? <code><Name of={what.what} /></code> : part === "hook" ? hook : part}</Fragment>
        ))}
        <SaidText text={why} />
        {over !== "" && (
          <>
            {" "}
            <SaidText text={over} />
          </>
        )}
        {more}
      </>
    );
  }
  return <>{words.plain[what.kind](many.calls, many.hooks, what.why)}</>;
}

function Actions({ family }: { family: Family }) {
  const words = useWords().turns;
  const { turn } = family.turn;
  const isElsewhere = useIsElsewhere(turn.tenantId);
  return (
    <>
      {!turn.subAgent && !isElsewhere && (
        <Link to="/chat/$key" params={{ key: turn.sessionKey }} className="text-accent underline">
          {words.openConversation}
        </Link>
      )}
      <Button look="quiet" onClick={() => download(`turn-${turn.turnId}.json`, `${JSON.stringify(family, null, 2)}\n`)}>{words.export}</Button>
    </>
  );
}
