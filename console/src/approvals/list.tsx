import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";

import { Beyond } from "../ui/beyond.tsx";
import { ChooseTenants } from "../ui/choose.tsx";
import { EVERY_TENANT, useEverywhere } from "../ui/every-tenant.ts";
import { ExactText } from "../ui/exact.tsx";
import { Check } from "../ui/field.tsx";
import { useHeld } from "../ui/held.ts";
import { useListKeys } from "../ui/list-keys.ts";
import { Name } from "../ui/name.tsx";
import { Newer } from "../ui/newer.tsx";
import { Card, Empty, Page, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { SaidText } from "../ui/said-text.tsx";
import { Timed } from "../ui/when.tsx";
import { useApprovals, useTenantNames } from "../wire/queries.ts";
import type { Approval } from "../wire/types.ts";
import { useMay } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { StateWord } from "./answer.tsx";
import { inOrder } from "./parts.ts";

const NONE: readonly Approval[] = [];
const idOf = ({ id }: Approval): string => id;

/** What waits for a person, and what was said. */
export function ApprovalsPage() {
  const { notFound } = useWords();
  const may = useMay("operator", "operator.approvals");
  const isOfRole = useMay("operator");
  if (isOfRole && !may) {
    return <Beyond scope="operator.approvals" />;
  }
  return may ? (
    <Queue />
  ) : (
    <Page>
      <Empty title={notFound.title}>{notFound.about}</Empty>
    </Page>
  );
}

function Queue() {
  const words = useWords().approvals;
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const navigate = useNavigate();
  const all = search["all"] === "yes";
  const everywhere = useEverywhere();
  const found = useApprovals(all, everywhere);
  const rows = useMemo(() => inOrder(found.data ?? NONE), [found.data]);
  const waiting = rows.filter(({ state }) => state === "waiting").length;
  useListKeys();
  const set = (name: string, value: string | undefined): void => void navigate({ to: "/approvals", search: (before: Record<string, unknown>) => ({ ...before, [name]: value }) as never, replace: true });
  return (
    <Page>
      <PageHead title={words.title} answer={found.data !== undefined ? words.answer(waiting) : found.error === null ? words.loading : ""} />
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <Check label={words.showAll} checked={all} onChange={(event) => set("all", event.target.checked ? "yes" : undefined)} />
        <ChooseTenants value={everywhere ? EVERY_TENANT : ""} choose={(to) => set("tenant", to === "" ? undefined : to)} />
      </div>
      {found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.data !== undefined && rows.length === 0 && <Empty title={words.empty}>{words.emptyAbout}</Empty>}
      {/* Whoever asks for others reads another list: nothing of it is news. */}
      {found.data !== undefined && <Rows key={`${all} ${everywhere}`} rows={rows} everywhere={everywhere} />}
    </Page>
  );
}

/** The rows of one list; those that come while it is read wait. */
function Rows({ rows, everywhere }: { rows: readonly Approval[]; everywhere: boolean }) {
  const tenants = useTenantNames();
  const list = useHeld(rows, idOf);
  return (
    <>
      <Newer list={list} />
      {list.shown.length > 0 && (
        <Card className="overflow-hidden">
          <ul>
            {list.shown.map((approval) => (
              <Row key={approval.id} approval={approval} tenant={everywhere ? tenants.get(approval.tenantId ?? "") : undefined} />
            ))}
          </ul>
        </Card>
      )}
    </>
  );
}

function Row({ approval, tenant }: { approval: Approval; tenant: string | undefined }) {
  const { approvals: words, colon } = useWords();
  const command = approval.arguments["cmd"] ?? approval.arguments["command"];
  return (
    <li className="border-b border-line last:border-b-0">
      <Link
        data-row
        to="/approvals/$id"
        params={{ id: approval.id }}
        className="grid grid-cols-[minmax(128px,auto)_minmax(0,1fr)_auto] items-start gap-3 px-3 py-2 -outline-offset-2! hover:bg-tint max-sm:grid-cols-1 max-sm:gap-1 max-sm:py-3"
      >
        <StateWord approval={approval} />
        <span className="min-w-0">
          <code className="font-semibold"><Name of={approval.tool} /></code>{" "}
          <code className="line-clamp-2 whitespace-pre-wrap">
            <ExactText text={typeof command === "string" ? command : JSON.stringify(approval.arguments)} />
          </code>
          <span className="block text-muted">
            <span className="font-medium text-text"><Name of={approval.by} /></span>
            {approval.reason !== "" && colon}
            <SaidText text={approval.reason} />
          </span>
        </span>
        <span className="text-small text-muted">
          <Timed says={words.asked} at={approval.asked_at} />
          {approval.state === "waiting" && (
            <span className="block">
              <Timed says={words.until} at={approval.expires_at} />
            </span>
          )}
          {tenant !== undefined && ` · ${tenant}`}
        </span>
      </Link>
    </li>
  );
}
