import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { ChooseHook, ChooseTenants } from "../ui/choose.tsx";
import { EVERY_TENANT, ofTenants } from "../ui/every-tenant.ts";
import { useListKeys } from "../ui/list-keys.ts";
import { Name } from "../ui/name.tsx";
import { Empty, Page, PageHead } from "../ui/page.tsx";
import { PagedList } from "../ui/paged-list.tsx";
import { When } from "../ui/when.tsx";
import { usePaged } from "../wire/paged.ts";
import type { HookChange, Payload } from "../wire/types.ts";
import { useEvent, useWire } from "../wire/use-wire.ts";
import { useLanguage, useWords } from "../words/use-words.ts";
import { useHooks, useIsGone, useTenantNames } from "../wire/queries.ts";
import { because, budgetsBefore, budgetSet, changed, owesReason, wordOf } from "./changed.ts";
import { labelsOf } from "./state.ts";

/** How many rows are fetched at once. */
const A_PAGE = 100;
const HEIGHT = { wide: 33, narrow: 81 };

const rowsOf = ({ changes }: Payload<"hooks.changes">): readonly HookChange[] => changes;
const idOf = ({ id }: HookChange): string => id;

/** Who changed which rule, and when. */
export function ChangesPage() {
  const words = useWords();
  const { connection } = useWire();
  const navigate = useNavigate();
  const { me } = useWire();
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const hook = search["hook"] ?? "";
  const everywhere = search["tenant"] === EVERY_TENANT;
  const tenants = useTenantNames();
  // An owner sees every tenant's.
  const about = hook !== "" ? { hookId: hook } : me.is_owner && !everywhere ? { tenantId: me.tenant_id } : {};
  const [came, setCame] = useState(0);
  useListKeys();
  useEvent("hooks.changed", ({ hookId }) => (hook === "" || hook === hookId) && setCame((so) => so + 1));
  const list = usePaged(
    ["changes", about],
    async (cursor) => {
      const page = await connection.request("hooks.changes", { limit: A_PAGE, ...about, ...(cursor === undefined ? {} : { cursor }) });
      if (cursor === undefined) {
        setCame(0);
      }
      return page;
    },
    rowsOf,
  );
  const before = useMemo(() => budgetsBefore(list.rows), [list.rows]);
  const set = (name: string, value: string): void => void navigate({ to: "/hooks/changes", search: (before: Record<string, unknown>) => ({ ...before, [name]: value === "" ? undefined : value }) as never, replace: true });
  return (
    <Page>
      <PageHead title={words.rules.changes.title} above={<Link to="/hooks" search={ofTenants(everywhere) as never}>{words.hooks.title}</Link>} answer={words.rules.changes.answer} />
      <div className="mb-3 flex flex-wrap gap-2">
        <ChooseHook known={list.rows[0]?.hook_name ?? undefined} value={hook} choose={(to) => set("hook", to)} />
        <ChooseTenants value={everywhere ? EVERY_TENANT : ""} choose={(to) => set("tenant", to)} />
      </div>
      <PagedList label={words.rules.changes.title} list={list} newer={came} height={HEIGHT} idOf={idOf} empty={<Empty title={words.rules.changes.empty} />}>
        {(change) => <ChangeRow change={change} budgetWas={before.get(change.id)} tenant={everywhere ? tenants.get(change.tenant_id) : undefined} />}
      </PagedList>
    </Page>
  );
}

function ChangeRow({ change, budgetWas, tenant }: { change: HookChange; budgetWas: number | undefined; tenant: string | undefined }) {
  const words = useWords();
  const language = useLanguage();
  const event = labelsOf(useHooks().data ?? []).get(change.hook_id ?? "")?.event;
  const isGone = useIsGone(change.hook_id) || change.action === "deleted";
  // Which way it was switched is said already.
  const budget = budgetSet(change.diff);
  const settings = change.action === "toggled" || budget !== undefined ? [] : changed(change.diff);
  const why = because(change.diff);
  const look = "grid grid-cols-[96px_minmax(0,1fr)_minmax(0,1fr)_minmax(0,2fr)] items-center gap-2 px-3 max-sm:grid-cols-[minmax(0,1fr)_auto] max-sm:gap-y-0 max-sm:py-1";
  const holds = (
    <>
      <span className="text-muted max-sm:order-2">
        <When at={change.at} />
      </span>
      <span className="truncate font-medium max-sm:order-1">
        <Name of={change.hook_name || (change.hook_id ?? words.rules.budget.title)} />
        {event !== undefined && (
          <>
            {" "}
            <code className="text-small font-normal text-muted">{event}</code>
          </>
        )}
      </span>
      <span className="truncate max-sm:order-3 max-sm:col-span-2">
        {words.overview.did(wordOf(change, words.overview.actions), change.actor)}
        {tenant !== undefined && <span className="text-small text-muted"> · {tenant}</span>}
      </span>
      <span className="truncate text-muted max-sm:order-4 max-sm:col-span-2">
        {change.version > 0 && words.rules.versions.version(change.version)}
        {budget !== undefined && words.rules.changes.budget(budget.toLocaleString(language), budgetWas?.toLocaleString(language))}
        {settings.map((name, at) => (
          <code key={name}>
            {(at > 0 || change.version > 0) && " · "}
            {name}
          </code>
        ))}
        {why !== "" && <span title={why}> {words.rules.changes.because(why)}</span>}
        {owesReason(change) && <span> {words.rules.changes.noReason}</span>}
      </span>
    </>
  );
  // Of a budget there is nothing to open; of a hook that is gone, what is known of it.
  if (change.hook_id === null) {
    return <div className={look}>{holds}</div>;
  }
  return (
    <Link
      data-row
      to={isGone ? "/hooks/changes" : "/hooks/$id"}
      params={isGone ? {} : { id: change.hook_id }}
      search={(isGone ? { hook: change.hook_id } : { tab: "versions", ...(change.version > 0 ? { version: String(change.version) } : {}) }) as never}
      className={`${look} -outline-offset-2! hover:bg-tint`}
    >
      {holds}
    </Link>
  );
}
