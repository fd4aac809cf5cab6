import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useForm, useWatch } from "react-hook-form";

import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { JsonDiff } from "../ui/diff.tsx";
import { FormProblem } from "./form-problem.tsx";
import { Card } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import type { Hook } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { SavedMeanwhile, saveOver } from "./conflict.ts";
import { changes, type Draft, toDraft, toRecord } from "./draft.ts";
import { HookFields } from "./form.tsx";
import { drop, keep, keptDraft, placeOf } from "./kept.ts";
import { homeOf, stateOf } from "./state.ts";
import { TestPanel } from "./test-panel.tsx";
import { merged, type Merged, type Setting } from "./three-way.ts";

/** How far back it is looked for who saved a version. */
const CHANGES = 20;

/** Who saved a version of a hook, as soon as that is known: it may have been oneself, on another page. */
function useWhoSaved(hookId: string, version: number | undefined): string {
  const words = useWords().hooks.conflict;
  const { connection, me } = useWire();
  const changed = useQuery({
    queryKey: ["hooks", "changes", hookId, version],
    queryFn: async () => (await connection.request("hooks.changes", { hookId, limit: CHANGES })).changes,
    enabled: version !== undefined,
  });
  const actor = changed.data?.find((change) => change.version === version)?.actor;
  return actor === undefined ? words.somebody : actor === me.user_id ? words.you : actor;
}

/** Changes a hook. What is typed stays when a save fails, and when somebody else saves first. */
export function EditHook({ hook }: { hook: Hook }) {
  const words = useWords().hooks;
  const { connection, me } = useWire();
  const queries = useQueryClient();
  const place = placeOf(me, hook.id);
  // What the form began with: what others change meanwhile does not change what is typed.
  const [base, setBase] = useState(hook);
  const [theirs, setTheirs] = useState<Hook>();
  // What is wrong is told while it is typed: told on leaving a field, it would move away what somebody is about to click.
  const form = useForm<Draft>({ defaultValues: toDraft(hook), mode: "onChange" });
  const { isDirty } = form.formState;
  const event = useWatch({ control: form.control, name: "event" });
  const handler = useWatch({ control: form.control, name: "handler" });
  useEffect(() => {
    // What was typed comes back after a session ended.
    const before = keptDraft(place);
    if (before !== undefined) {
      form.reset(before, { keepDefaultValues: true });
    }
    return form.subscribe({ formState: { values: true, isDirty: true }, callback: ({ values, isDirty: typed }) => (typed === true ? keep(place, values, toDraft(base)) : drop(place)) });
  }, [form, place, base]);
  const begin = (from: Hook): void => {
    drop(place);
    setBase(from);
    form.reset(toDraft(from));
  };
  useEffect(() => {
    if (!isDirty && hook.version !== base.version) {
      setBase(hook);
      form.reset(toDraft(hook));
    }
  }, [hook, base, isDirty, form]);
  const save = useMutation({
    mutationFn: ({ draft, over }: { draft: Draft; over: Hook }) => saveOver(connection, hook.id, changes(toDraft(over), draft), over.version),
    onSuccess: async (saved) => {
      setTheirs(undefined);
      begin(saved);
      queries.setQueryData(["hooks", "one", hook.id], saved);
      await queries.invalidateQueries({ queryKey: ["hooks"] });
    },
    onError: (error) => {
      if (error instanceof SavedMeanwhile) {
        setTheirs(error.theirs);
      }
    },
  });
  const isOvertaken = isDirty && hook.version !== base.version;
  const who = useWhoSaved(hook.id, theirs?.version ?? (isOvertaken ? hook.version : undefined));
  return (
    <div className="grid grid-cols-[minmax(0,1fr)_360px] items-start gap-6 max-lg:grid-cols-1">
      <Card className="p-4">
        <form noValidate onSubmit={(submitted) => void form.handleSubmit((draft) => save.mutate({ draft, over: base }))(submitted)}>
          <HookFields form={form} tenant={homeOf(hook)} />
          {isOvertaken && theirs === undefined && (
            <p role="status" className="mt-4 rounded bg-ask-bg px-3 py-2 text-ask">
              {words.changedMeanwhile(hook.version, who)}
            </p>
          )}
          <div className="mt-4 flex flex-wrap items-center gap-2">
            <Button look="primary" type="submit" disabled={save.isPending || !isDirty}>
              {words.save}
            </Button>
            <Button disabled={!isDirty} onClick={() => begin(hook)}>
              {words.discard}
            </Button>
            <span role="status" className="text-small text-muted">
              {save.isSuccess && !isDirty ? words.saved(base.version, stateOf(base) === "on") : words.versionOf(base.version)}
            </span>
          </div>
          {save.error !== null && !(save.error instanceof SavedMeanwhile) && <FormProblem error={save.error} />}
        </form>
      </Card>
      <TestPanel event={event} handler={handler} matcher={hook.matcher} what={() => (isDirty ? { config: toRecord(form.getValues()) } : { hookId: hook.id })} />
      <Dialog open={theirs !== undefined} onClose={() => setTheirs(undefined)} title={words.conflict.title(who)} about={words.conflict.about(theirs?.version ?? 0)} wide>
        {theirs !== undefined && (
          <Conflict
            theirs={theirs}
            both={merged(toDraft(base), toDraft(theirs), form.getValues())}
            who={who}
            error={save.error}
            isPending={save.isPending}
            keepEditing={() => setTheirs(undefined)}
            take={() => {
              begin(theirs);
              setTheirs(undefined);
            }}
            overwrite={(draft) => save.mutate({ draft, over: theirs })}
          />
        )}
      </Dialog>
    </div>
  );
}

interface ConflictProps {
  readonly theirs: Hook;
  readonly both: Merged;
  readonly who: string;
  readonly error: unknown;
  readonly isPending: boolean;
  readonly keepEditing: () => void;
  readonly take: () => void;
  readonly overwrite: (draft: Draft) => void;
}

/** What somebody else saved, and what would be saved over it: only what was touched here. */
function Conflict({ theirs, both: { draft, mine, both }, who, error, isPending, keepEditing, take, overwrite }: ConflictProps) {
  const words = useWords().hooks;
  const labels: Readonly<Record<Setting, string>> = { ...words.fields, timeoutMs: words.fields.timeLimit };
  const named = (settings: readonly Setting[]): string => settings.map((name) => labels[name]).join(words.conflict.and);
  const nothing = mine.length === 0;
  return (
    <>
      <p data-testid="conflict-result">{nothing ? words.conflict.nothing(theirs.version) : words.conflict.result(theirs.version, named(mine))}</p>
      {both.length > 0 && <p className="text-ask">{words.conflict.both(named(both))}</p>}
      <div className="mt-2">
        <JsonDiff before={toRecord(toDraft(theirs))} after={toRecord(draft)} titles={[words.conflict.theirs(theirs.version), words.conflict.yours]} label={words.conflict.title(who)} />
      </div>
      {error !== null && !(error instanceof SavedMeanwhile) && <Problem error={error} />}
      <div className="mt-4 flex flex-wrap justify-end gap-2">
        <Button onClick={keepEditing}>{words.conflict.keep}</Button>
        <Button onClick={take}>{words.conflict.take}</Button>
        <Button look="primary" disabled={isPending || nothing} onClick={() => overwrite(draft)}>
          {words.conflict.overwrite}
        </Button>
      </div>
    </>
  );
}
