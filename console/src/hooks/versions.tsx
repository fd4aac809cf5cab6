import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useState } from "react";

import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { JsonDiff } from "../ui/diff.tsx";
import { Card, Empty } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { When } from "../ui/when.tsx";
import type { Hook, HookVersion } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { deedOf, restoredOver } from "./changed.ts";

/** Brings what an address means into view. */
const intoView = (element: HTMLElement | null): void => element?.scrollIntoView({ block: "center" });

/** What a hook was: who changed what, and the way back. */
export function Versions({ hook, mayChange }: { hook: Hook; mayChange: boolean }) {
  const { rules, overview } = useWords();
  const words = rules.versions;
  const { actions, did } = overview;
  const { connection } = useWire();
  const queries = useQueryClient();
  const found = useQuery({ queryKey: ["hooks", "versions", hook.id], queryFn: async () => (await connection.request("hooks.versions", { hookId: hook.id })).versions });
  const [restores, setRestores] = useState<HookVersion>();
  const versions = found.data ?? [];
  const now = versions.find(({ version }) => version === hook.version)?.hook;
  // An address may mean one of them.
  const asked = (useSearch({ strict: false }) as Record<string, string | undefined>)["version"];
  const isMissing = asked !== undefined && found.data !== undefined && !versions.some(({ version }) => String(version) === asked);
  return (
    <>
      {found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.data !== undefined && versions.length === 0 && <Empty title={words.none} />}
      {isMissing && <Empty title={words.missing(asked)}>{words.missingAbout}</Empty>}
      <ol className="flex flex-col gap-3">
        {versions.map((one, at) => {
          const before = versions[at + 1];
          const isAsked = String(one.version) === asked;
          const { word, why, owes } = deedOf(one, before, actions);
          return (
            <li key={`${one.version} ${one.at}`} ref={isAsked ? intoView : undefined} data-version={one.version} aria-current={isAsked ? "true" : undefined}>
              <Card className={isAsked ? "border-accent p-4" : "p-4"}>
                <p className="flex flex-wrap items-center gap-2">
                  <Link to="/hooks/$id" params={{ id: hook.id }} search={{ tab: "versions", version: String(one.version) } as never} replace className="font-semibold text-accent underline">
                    {words.version(one.version)}
                  </Link>
                  <span className="text-muted">
                    {did(word, one.actor)} · <When at={one.at} />
                  </span>
                  {why !== "" && <span className="text-muted">{rules.changes.because(why)}</span>}
                  {owes && <span className="text-muted">{rules.changes.noReason}</span>}
                  {mayChange && one.version !== hook.version && (
                    <Button className="ml-auto" aria-label={words.restoreWhich(one.version)} onClick={() => setRestores(one)}>
                      {words.restore}
                    </Button>
                  )}
                </p>
                {before !== undefined && (
                  <details className="mt-2" open={isAsked}>
                    <summary className="text-accent">{words.what}</summary>
                    <JsonDiff before={before.hook} after={one.hook} titles={[words.version(before.version), words.version(one.version)]} label={words.diff(before.version, one.version)} />
                  </details>
                )}
              </Card>
            </li>
          );
        })}
      </ol>
      <Confirm
        open={restores !== undefined}
        onClose={() => setRestores(undefined)}
        title={words.restoreTitle(restores?.version ?? 0)}
        about={words.restoreAbout}
        action={words.restore}
        wide
        act={async () => {
          await connection.request("hooks.restore", { hookId: hook.id, version: restores?.version ?? 0, ifVersion: hook.version });
          await queries.invalidateQueries({ queryKey: ["hooks"] });
        }}
      >
        {restores !== undefined && now !== undefined && (
          <div className="mb-2">
            <JsonDiff before={now} after={restoredOver(now, restores.hook)} titles={[words.version(hook.version), words.version(restores.version)]} label={words.restoreDiff(hook.version, restores.version)} />
          </div>
        )}
      </Confirm>
    </>
  );
}
