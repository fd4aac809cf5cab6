import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import * as Tabs from "@radix-ui/react-tabs";
import { useState } from "react";

import { causeOfState } from "../advice/advice.ts";
import { AdviceNote } from "../advice/advice-note.tsx";
import { ExecutionList } from "../executions/execution-list.tsx";
import { Button } from "../ui/button.tsx";
import { Code } from "../ui/code.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { ofTenants } from "../ui/every-tenant.ts";
import { Name } from "../ui/name.tsx";
import { Card, Empty, Page, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { When } from "../ui/when.tsx";
import { isMissing } from "../wire/missing.ts";
import { GATES, type Hook, type JsonObject } from "../wire/types.ts";
import { useAgentsOf, useHooks, useProofs, useTenantNames } from "../wire/queries.ts";
import { useIsElsewhere, useMay, useMayTry, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { agentNames } from "./agent-names.ts";
import { because, owesReason, wordOf } from "./changed.ts";
import { metadataText } from "./draft.ts";
import { EditHook } from "./edit.tsx";
import { Reset } from "./list.tsx";
import { asksInstead, homeOf, refusesAgain, stateOf } from "./state.ts";
import { StateSign } from "./state-sign.tsx";
import { summary } from "./summary.tsx";
import { TestPanel } from "./test-panel.tsx";
import { Versions } from "./versions.tsx";

type Tab = "overview" | "edit" | "history" | "versions";

export function HookPage() {
  const words = useWords();
  const { id } = useParams({ strict: false }) as { id: string };
  const { connection } = useWire();
  const found = useQuery({ queryKey: ["hooks", "one", id], queryFn: async () => (await connection.request("hooks.get", { hookId: id })).hook });
  if (found.data !== undefined) {
    return <OneHook key={id} hook={found.data} />;
  }
  const isGone = isMissing(found.error);
  return (
    <Page>
      {isGone && (
        <Empty title={words.hooks.notFound}>
          {words.hooks.notFoundAbout} <Link to="/hooks">{words.hooks.title}</Link>
        </Empty>
      )}
      {!isGone && found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.isPending && <p className="text-muted">{words.hooks.loading}</p>}
    </Page>
  );
}

const TAB = "border-b-2 border-transparent py-1 text-muted data-[state=active]:border-accent data-[state=active]:font-semibold data-[state=active]:text-text max-sm:min-h-11";

/** The server takes no longer reason to switch off: the row of the hook has it. */
const MAX_OFF_REASON_CHARS = 32;

function OneHook({ hook }: { hook: Hook }) {
  const words = useWords();
  const navigate = useNavigate();
  const mayChange = useMayChange(hook);
  useProofs();
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const asked = search["tab"];
  const tab: Tab = asked === "history" || asked === "versions" || (asked === "edit" && mayChange) ? asked : "overview";
  const go = (to: string): void => {
    void navigate({ to: "/hooks/$id", params: { id: hook.id }, search: { tab: to === "overview" ? undefined : to } as never });
  };
  const file = hook.metadata["file"];
  const home = homeOf(hook);
  const isElsewhere = useIsElsewhere(home);
  const tenants = useTenantNames();
  return (
    <Page>
      <PageHead
        title={hook.name || hook.id}
        above={<Link to="/hooks" search={ofTenants(isElsewhere) as never}>{words.hooks.title}</Link>}
        shown={<Name of={hook.name || hook.id} />}
        below={
          <div className="mt-1 flex flex-wrap items-center gap-x-2">
            <StateSign hook={hook} />
          </div>
        }
        answer={summary(hook, words)}
        actions={<Actions hook={hook} />}
      />
      <AdviceNote cause={causeOfState(hook)} />
      {home !== undefined && isElsewhere && <p className="mb-2 text-ask">{words.rules.ofTenant(tenants.get(home) ?? home)}</p>}
      {typeof file === "string" && <p className="mb-2 text-muted">{words.hooks.fromFile(file)}</p>}
      {hook.source === "builtin" && <p className="mb-2 text-muted">{words.hooks.readOnly}</p>}
      <Tabs.Root value={tab} onValueChange={go}>
        <Tabs.List aria-label={words.hooks.parts} className="mb-4 flex gap-4 border-b border-line">
          <Tabs.Trigger value="overview" className={TAB}>
            {words.hooks.overview}
          </Tabs.Trigger>
          {mayChange && (
            <Tabs.Trigger value="edit" className={TAB}>
              {words.hooks.edit}
            </Tabs.Trigger>
          )}
          <Tabs.Trigger value="history" className={TAB}>
            {words.hooks.history}
          </Tabs.Trigger>
          {hook.config_hidden !== true && (
            <Tabs.Trigger value="versions" className={TAB}>
              {words.rules.versions.title}
            </Tabs.Trigger>
          )}
        </Tabs.List>
        <Tabs.Content value="overview" tabIndex={-1}>
          <Overview hook={hook} />
        </Tabs.Content>
        {mayChange && (
          // What was typed stays while somebody looks at another tab.
          <Tabs.Content value="edit" forceMount hidden={tab !== "edit"} tabIndex={-1}>
            <EditHook key={hook.id} hook={hook} />
          </Tabs.Content>
        )}
        <Tabs.Content value="versions" tabIndex={-1}>
          <Versions hook={hook} mayChange={mayChange} />
        </Tabs.Content>
        <Tabs.Content value="history" tabIndex={-1}>
          <ExecutionList hookId={hook.id} to="/hooks/$id" params={{ id: hook.id }} />
        </Tabs.Content>
      </Tabs.Root>
    </Page>
  );
}

/** Whether one may change it over the socket: not what is shipped, not what a file has, not what is everybody's. */
function useMayChange(hook: Hook): boolean {
  const { me } = useWire();
  const admin = useMay("admin");
  return admin && hook.source === "user" && typeof hook.metadata["file"] !== "string" && (hook.scope !== "global" || me.is_master_scope);
}

function Actions({ hook }: { hook: Hook }) {
  const words = useWords().hooks;
  const { connection, me } = useWire();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const mayChange = useMayChange(hook);
  const admin = useMay("admin");
  const [asks, setAsks] = useState<"off" | "delete">();
  const fresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["hooks"] });
  const on = useMutation({ mutationFn: () => connection.request("hooks.toggle", { hookId: hook.id, enabled: true }), onSuccess: fresh });
  const mayToggle = mayChange || (admin && me.is_master_scope && hook.source === "builtin");
  const isGate = GATES.includes(hook.event);
  const rules = useHooks().data ?? [];
  const instead = asksInstead(hook, rules);
  const still = instead.filter((rule) => stateOf(rule) === "on");
  const refuses = refusesAgain(hook, rules);
  const state = stateOf(hook);
  const sure = {
    off: {
      title: words.offTitle,
      gate: words.offGate,
      observer: words.offObserver,
      action: words.switchOff,
      hint: words.offReasonHint,
      most: MAX_OFF_REASON_CHARS,
      act: (reason: string) => connection.request("hooks.toggle", { hookId: hook.id, enabled: false, reason }).then(fresh),
    },
    delete: {
      title: words.deleteTitle,
      gate: words.deleteGate,
      observer: words.deleteObserver,
      action: words.delete,
      hint: words.deleteReasonHint,
      most: undefined,
      act: async (reason: string) => {
        await connection.request("hooks.delete", { hookId: hook.id, reason });
        await navigate({ to: "/hooks" });
        await fresh();
      },
    },
  }[asks ?? "off"];
  return (
    <>
      {state === "tripped" && <Reset hook={hook} />}
      {mayToggle && (state === "off" || state === "edition" || state === "agents") && (
        <Button disabled={on.isPending} onClick={() => on.mutate()}>
          {words.switchOn}
        </Button>
      )}
      {mayToggle && (state === "on" || state === "tripped") && <Button onClick={() => setAsks("off")}>{words.switchOff}</Button>}
      {mayChange && (
        <Button look="danger" onClick={() => setAsks("delete")}>
          {words.delete}
        </Button>
      )}
      {on.error !== null && <Problem error={on.error} />}
      <Confirm open={asks !== undefined} onClose={() => setAsks(undefined)} title={sure.title(hook.name || hook.id)} about={refuses !== undefined ? words.refusesAgain(refuses.name || refuses.id) : isGate ? sure.gate(hook.matcher) : sure.observer} action={sure.action} act={sure.act} reasonHint={sure.hint} reasonMost={sure.most}>
        {asks === "off" && still.length > 0 && <p className="mb-2">{words.asksStill(still.map((rule) => rule.name))}</p>}
        {asks === "delete" && instead.length > 0 && <p className="mb-2">{words.asksStay(instead.map((rule) => rule.name))}</p>}
      </Confirm>
    </>
  );
}

/** How whoever created a rule begins that came from a file. */
const FROM_FILE = "file:";

function Overview({ hook }: { hook: Hook }) {
  const words = useWords();
  const mayTest = useMayTry();
  const agents = useAgentsOf(homeOf(hook));
  const metadata = metadataText(hook.metadata);
  const facts: readonly (readonly [string, string])[] = [
    [words.hooks.fields.event, hook.event],
    [words.hooks.fields.handler, words.hooks.handlers[hook.handler_type]],
    [words.hooks.fields.scope, words.hooks.scopes[hook.scope]],
    ...(hook.scope === "agent" ? [[words.hooks.fields.agents, agentNames(hook.agent_ids, agents).join(", ")] as const] : []),
    [words.hooks.fields.matcher, hook.matcher || words.hooks.everything],
    [words.hooks.fields.condition, hook.if_expr || words.hooks.none],
    [words.hooks.fields.timeLimit, `${hook.timeout_ms} ms`],
    [words.hooks.fields.onTimeout, words.hooks.fallbacks[hook.on_timeout]],
    [words.hooks.fields.priority, String(hook.priority)],
    [words.hooks.fields.breaker, words.hooks.breakers[hook.breaker]],
    [words.hooks.fields.onTrip, words.hooks.fallbacks[hook.on_trip]],
    [words.hooks.fields.mayRewrite, hook.may_rewrite ? words.test.yes : words.test.no],
    [words.hooks.version, String(hook.version)],
    [words.hooks.createdBy, hook.source === "builtin" ? words.hooks.byPintle("") : hook.created_by?.startsWith(FROM_FILE) === true ? words.hooks.byPintle(hook.created_by.slice(FROM_FILE.length)) : (hook.created_by ?? "–")],
    ["ID", hook.id],
  ];
  return (
    <div className="grid grid-cols-[minmax(0,1fr)_360px] items-start gap-6 max-lg:grid-cols-1">
      <Card className="p-4">
        <dl className="grid grid-cols-[144px_minmax(0,1fr)] gap-x-3 gap-y-1">
          {facts.map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-muted">{name}</dt>
              <dd className={name === words.hooks.fields.matcher || name === words.hooks.fields.condition ? "font-mono whitespace-pre-wrap" : ""}>
                <Name of={value} />
              </dd>
            </div>
          ))}
          <dt className="text-muted">{words.hooks.changed}</dt>
          <dd>
            <When at={hook.updated_at} />
          </dd>
          <dt className="text-muted">{hook.handler_type === "script" && hook.config_hidden !== true ? words.hooks.fields.source : words.hooks.settings}</dt>
          <dd>
            {hook.config_hidden === true ? (
              words.hooks.hidden
            ) : (
              <Settings config={hook.config} />
            )}
          </dd>
          {metadata !== "" && (
            <>
              <dt className="text-muted">{words.hooks.fields.metadata}</dt>
              <dd>
                <Code text={metadata} language="json" label={words.hooks.fields.metadata} className="max-h-80" />
              </dd>
            </>
          )}
        </dl>
      </Card>
      <div className="flex flex-col gap-6">
        {mayTest && hook.config_hidden !== true && <TestPanel event={hook.event} handler={hook.handler_type} matcher={hook.matcher} what={() => ({ hookId: hook.id })} />}
        <LastChanges hook={hook} />
      </div>
    </div>
  );
}

/** How many changes stand on the overview of a hook. */
const LAST_CHANGES = 5;

/** Who changed a hook last, and why. */
function LastChanges({ hook }: { hook: Hook }) {
  const words = useWords();
  const { connection } = useWire();
  const found = useQuery({ queryKey: ["hooks", "changes", hook.id], queryFn: async () => (await connection.request("hooks.changes", { hookId: hook.id, limit: LAST_CHANGES })).changes });
  return (
    <Card className="p-4">
      <h2 className="flex items-baseline justify-between text-large font-semibold">
        {words.rules.changes.title}
        <Link to="/hooks/changes" search={{ hook: hook.id } as never} className="text-small font-normal text-accent underline">
          {words.overview.all}
        </Link>
      </h2>
      {found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      <ol aria-label={words.rules.changes.title}>
        {(found.data ?? []).map((change) => {
          const why = because(change.diff);
          return (
            <li key={change.id} className="mt-1">
              <When at={change.at} /> {words.overview.did(wordOf(change, words.overview.actions), change.actor)}
              {hook.config_hidden !== true && change.version > 0 && (
                <>
                  {" · "}
                  <Link to="/hooks/$id" params={{ id: hook.id }} search={{ tab: "versions", version: String(change.version) } as never} className="text-accent underline">
                    {words.rules.versions.version(change.version)}
                  </Link>
                </>
              )}
              {why !== "" && <span className="block text-muted wrap-anywhere">{words.rules.changes.because(why)}</span>}
              {owesReason(change) && <span className="block text-muted">{words.rules.changes.noReason}</span>}
            </li>
          );
        })}
      </ol>
    </Card>
  );
}

/** The settings of a handler: texts with several lines, such as scripts, as they are, everything else as JSON. */
function Settings({ config }: { config: JsonObject }) {
  const words = useWords().hooks;
  const texts = Object.entries(config).filter((entry): entry is [string, string] => typeof entry[1] === "string" && (entry[1].includes("\n") || entry[0] === "source"));
  const rest = Object.fromEntries(Object.entries(config).filter(([name]) => !texts.some(([other]) => other === name)));
  return (
    <div className="flex flex-col gap-2">
      {texts.map(([name, text]) => (
        <Code key={name} text={text} language="plain" label={name === "source" ? words.fields.source : `${words.settings}: ${name}`} className="max-h-80" />
      ))}
      {(texts.length === 0 || Object.keys(rest).length > 0) && <Code text={JSON.stringify(rest, null, 2)} language="json" label={words.settings} className="max-h-80" />}
    </div>
  );
}
