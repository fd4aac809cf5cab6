import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useForm, useWatch } from "react-hook-form";

import { Button } from "../ui/button.tsx";
import { FormProblem } from "./form-problem.tsx";
import { Card, Empty, Page, PageHead } from "../ui/page.tsx";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { type Draft, EMPTY, toRecord } from "./draft.ts";
import { HookFields } from "./form.tsx";
import { drop, isTyped, keep, keptDraft, keptTemplate, placeOf } from "./kept.ts";
import { TemplateChoice } from "./template-choice.tsx";
import { fromTemplate, type Template, templateOf, tryOutOf } from "./templates.ts";
import { TestPanel } from "./test-panel.tsx";

/** What was in the form before a template took its place. */
interface Replaced {
  readonly draft: Draft;
  readonly template: Template | undefined;
}

/** A hook that is not there yet. */
export function NewHookPage() {
  const words = useWords();
  const may = useMay("admin");
  const { connection, me } = useWire();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { from } = useSearch({ strict: false }) as { from?: string };
  const asked = templateOf(from);
  const place = placeOf(me, "new");
  // What was typed comes back after a session ended; a template that somebody asks for comes first.
  const [first] = useState(() => (asked === undefined ? (keptDraft(place) ?? EMPTY) : fromTemplate(asked, words)));
  const beginningOf = useCallback((template: Template | undefined): Draft => (template === undefined ? EMPTY : fromTemplate(template, words)), [words]);
  // What a template took the place of is there until something else is done with the form.
  const [replaced, setReplaced] = useState<Replaced | undefined>(() => {
    const draft = keptDraft(place);
    const template = keptTemplate(place);
    return asked !== undefined && draft !== undefined && template !== asked && isTyped(draft, beginningOf(template)) ? { draft, template } : undefined;
  });
  // What is wrong is told while it is typed: told on leaving a field, it would move away what somebody is about to click.
  const form = useForm<Draft>({ defaultValues: first, mode: "onChange" });
  // What it is tried with goes with the template.
  const [began, setBegan] = useState(() => ({ with: asked ?? keptTemplate(place), times: 0 }));
  const beginning = useMemo(() => beginningOf(began.with), [beginningOf, began.with]);
  useEffect(() => form.subscribe({ formState: { values: true }, callback: ({ values }) => keep(place, values, beginning, began.with) }), [form, place, beginning, began.with]);
  const fill = (draft: Draft, template: Template | undefined): void => {
    form.reset(draft);
    keep(place, draft, beginningOf(template), template);
    setBegan(({ times }) => ({ with: template, times: times + 1 }));
  };
  const begin = (template: Template | undefined): void => {
    const draft = structuredClone(form.getValues());
    setReplaced(isTyped(draft, beginning) ? { draft, template: began.with } : undefined);
    fill(beginningOf(template), template);
  };
  const event = useWatch({ control: form.control, name: "event" });
  const handler = useWatch({ control: form.control, name: "handler" });
  const create = useMutation({
    mutationFn: (draft: Draft) => connection.request("hooks.create", toRecord(draft)),
    onSuccess: async ({ hookId }) => {
      drop(place);
      await queries.invalidateQueries({ queryKey: ["hooks"] });
      await navigate({ to: "/hooks/$id", params: { id: hookId } });
    },
  });
  if (!may) {
    return (
      <Page>
        <Empty title={words.hooks.mayNot}>{words.hooks.mayNotAbout}</Empty>
      </Page>
    );
  }
  return (
    <Page>
      <PageHead title={words.hooks.create} above={<Link to="/hooks">{words.hooks.title}</Link>} answer={words.hooks.createAbout} />
      <TemplateChoice onChoose={begin} />
      {replaced !== undefined && (
        <p role="status" className="mb-4 flex flex-wrap items-center gap-x-3 border-l-3 border-ask px-3">
          <span className="mr-auto">{words.rules.replaced}</span>
          <Button
            look="quiet"
            onClick={() => {
              fill(replaced.draft, replaced.template);
              setReplaced(undefined);
            }}
          >
            {words.rules.undoReplaced}
          </Button>
        </p>
      )}
      <div className="grid grid-cols-[minmax(0,1fr)_360px] items-start gap-6 max-lg:grid-cols-1">
        <Card className="p-4">
          <form noValidate onSubmit={(submitted) => void form.handleSubmit((draft) => create.mutate(draft))(submitted)}>
            <HookFields form={form} began={beginning} />
            <div className="mt-4 flex gap-2">
              <Button look="primary" type="submit" disabled={create.isPending}>
                {words.hooks.createAction}
              </Button>
            </div>
            {create.error !== null && <FormProblem error={create.error} />}
          </form>
        </Card>
        <TestPanel key={began.times} event={event} handler={handler} what={() => ({ config: toRecord(form.getValues()) })} first={tryOutOf(event === beginning.event ? began.with : undefined, words)} />
      </div>
    </Page>
  );
}
