import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { Reset } from "../hooks/list.tsx";
import { counted, ofTenant, stateOf } from "../hooks/state.ts";
import { StateSign } from "../hooks/state-sign.tsx";
import { GuardSign, useLack } from "../ui/guard-sign.tsx";
import { HookLink } from "../ui/hook-link.tsx";
import { Name } from "../ui/name.tsx";
import { Card, Page, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { SaidText } from "../ui/said-text.tsx";
import { Sign } from "../ui/sign.tsx";
import { useConfigured, useHooks } from "../wire/queries.ts";
import type { BreakerHealth, DoctorCheck, GuardLine, Hook } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { BudgetCard } from "./budget.tsx";
import { Doctor } from "./doctor.tsx";
import { NodesCard } from "./nodes.tsx";
import { Parts } from "./parts.tsx";
import { useBudget, useHealth, useNodes } from "./queries.ts";
import { lastFound, unprovenBy, wrongWith } from "./wrong.ts";

/** What is here that does not do its work, and why. */
export function HealthPage() {
  const words = useWords().health;
  const hooks = useHooks();
  const configured = useConfigured().data ?? [];
  const budget = useBudget();
  const owner = useMay("owner");
  const nodes = useNodes();
  const health = useHealth();
  const { connection, me } = useWire();
  const queries = useQueryClient();
  // What it found out others may know by now, too.
  const doctor = useMutation({ mutationFn: () => connection.request("doctor.run", {}), onSettled: () => queries.invalidateQueries({ predicate: ({ queryKey: [of] }) => of === "health" || of === "hooks" }) });
  const found = lastFound(doctor.data, health.data?.doctor);
  // An owner's list has every tenant's.
  const own = hooks.data === undefined ? undefined : ofTenant(hooks.data, me.tenant_id);
  const wrong = wrongWith(own ?? [], budget.data, nodes.data ?? [], health.data, found);
  const tripped = new Set((own ?? []).filter((hook) => stateOf(hook) === "tripped").map(({ id }) => id));
  const known = hooks.data !== undefined && budget.data !== undefined && health.data !== undefined;
  return (
    <Page>
      <PageHead title={words.title} answer={known ? words.answer(wrong.map((one) => words.wrong[one])) : words.loading} />
      {hooks.error !== null && <Problem error={hooks.error} retry={() => void hooks.refetch()} />}
      {budget.error !== null && <Problem error={budget.error} retry={() => void budget.refetch()} />}
      <div className="grid grid-cols-2 items-start gap-4 max-lg:grid-cols-1">
        {own !== undefined && <Breakers filling={(health.data?.breakers ?? []).filter(({ hookId, counted: count }) => !tripped.has(hookId) && count > 0)} hooks={own} on={counted(own, configured).on} broken={(health.data?.guards.notArmed ?? []).filter(({ state }) => state === "broken")} failed={unprovenBy(found)} />}
        {budget.data !== undefined && <BudgetCard budget={budget.data} />}
      </div>
      {health.error !== null && <Problem error={health.error} retry={() => void health.refetch()} />}
      {health.data !== undefined && <Parts health={health.data} />}
      {owner && <Doctor run={doctor} found={found} />}
      {owner && nodes.error !== null && <Problem error={nodes.error} retry={() => void nodes.refetch()} />}
      {owner && nodes.data !== undefined && <NodesCard nodes={nodes.data} />}
    </Page>
  );
}

/** The hooks that do not answer, whatever the reason, but those that somebody switched off. */
function Breakers({ hooks, on, filling, broken, failed }: { hooks: readonly Hook[]; on: number; filling: readonly BreakerHealth[]; broken: readonly GuardLine[]; failed: readonly DoctorCheck[] }) {
  const all = useWords();
  const words = all.health;
  const lack = useLack();
  const out = hooks.filter((hook) => !["on", "off"].includes(stateOf(hook)));
  return (
    <Card className="p-4">
      <h2 className="text-large font-semibold">{words.breakers}</h2>
      <p className="text-muted">{out.length + broken.length > 0 ? words.breakersAbout : failed.length > 0 ? words.doctor.failedAbout : words.noBreaker(on)}</p>
      <ul>
        {out.map((hook) => (
          <li key={hook.id} className="mt-2 border-t border-line pt-2">
            <p className="flex flex-wrap items-center gap-2">
              <Link to="/hooks/$id" params={{ id: hook.id }} className="font-semibold hover:underline">
                <Name of={hook.name || hook.id} />
              </Link>
              <StateSign hook={hook} />
              {stateOf(hook) === "tripped" && <Reset hook={hook} />}
            </p>
            <p className="text-muted">{stateOf(hook) === "tripped" ? words.whileTripped[hook.on_trip] : stateOf(hook) === "edition" ? all.advice.edition.cause : words.noAgents}</p>
          </li>
        ))}
        {broken.map(({ family, hookId, name, step, why }) => (
          <li key={`${family} ${hookId ?? name}`} className="mt-2 border-t border-line pt-2">
            <p className="flex flex-wrap items-center gap-2">
              <HookLink name={name} id={hookId} family={family} />
              <GuardSign state="broken" />
            </p>
            <p className="text-muted wrap-anywhere">{lack(step, why)}</p>
          </li>
        ))}
      </ul>
      {failed.length > 0 && (
        <>
          {out.length + broken.length > 0 && <p className="mt-4 text-muted">{words.doctor.failedAbout}</p>}
          <ul data-testid="failed-guards">
            {failed.map((one, at) => (
              <li key={at} className="mt-2 border-t border-line pt-2">
                <p className="flex flex-wrap items-center gap-2">
                  <HookLink name={one.name} />
                  <Sign kind="error" word={words.doctor.states.failed} />
                </p>
                <p className="text-muted">
                  <SaidText text={one.message} />
                </p>
              </li>
            ))}
          </ul>
        </>
      )}
      {filling.length > 0 && (
        <>
          <h3 className="mt-4 font-semibold">{words.filling}</h3>
          <ul data-testid="filling">
            {filling.map(({ hookId, name, counted: count, threshold, windowSeconds }) => (
              <li key={hookId} className="mt-2 flex flex-wrap items-center gap-2">
                <HookLink id={hookId} name={name} />
                <meter aria-label={words.counted(count, threshold, windowSeconds)} min={0} max={threshold} value={count} />
                <span className="text-muted">{words.counted(count, threshold, windowSeconds)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Card>
  );
}
