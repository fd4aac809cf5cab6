import { Controller, type UseFormReturn, useFieldArray, useWatch } from "react-hook-form";

import { Button } from "../ui/button.tsx";
import { CodeField } from "../ui/code-field.tsx";
import { Area, Check, Field, Input } from "../ui/field.tsx";
import { tooManyBytes } from "../ui/too-long.ts";
import { useWords } from "../words/use-words.ts";
import { isBetween, MAX_COMMAND_BYTES, MAX_INVOCATIONS, MAX_SOURCE_BYTES, MAX_TEMPLATE_BYTES } from "./bounds.ts";
import { type Draft, isKept, isNameless } from "./draft.ts";

type Form = UseFormReturn<Draft>;

/** The settings of the handler that is chosen. */
export function HandlerFields({ form }: { form: Form }) {
  const handler = useWatch({ control: form.control, name: "handler" });
  switch (handler) {
    case "command":
      return <CommandFields form={form} />;
    case "http":
      return <HttpFields form={form} />;
    case "prompt":
      return <PromptFields form={form} />;
    case "script":
      return <ScriptFields form={form} />;
  }
}

function CommandFields({ form: { register, formState } }: { form: Form }) {
  const words = useWords().hooks;
  const { errors } = formState;
  const fits = (text: string): true | string => tooManyBytes(text, MAX_COMMAND_BYTES, words.tooLong) ?? true;
  return (
    <>
      <Field label={words.fields.command} hint={words.hints.command} error={errors.command?.message}>
        {(about) => <Area {...about} rows={2} className="font-mono" {...register("command", { required: words.needed, validate: fits })} />}
      </Field>
      <Field label={words.fields.variables} hint={words.hints.variables}>
        {(about) => <Input {...about} className="font-mono" {...register("variables")} />}
      </Field>
      <Field label={words.fields.cwd} hint={words.hints.cwd}>
        {(about) => <Input {...about} className="font-mono" {...register("cwd")} />}
      </Field>
    </>
  );
}

function HttpFields({ form }: { form: Form }) {
  const words = useWords().hooks;
  const { register, formState } = form;
  return (
    <>
      <Field label={words.fields.url} hint={words.hints.url} error={formState.errors.url?.message}>
        {(about) => <Input {...about} type="url" className="font-mono" placeholder="https://" {...register("url", { required: words.needed })} />}
      </Field>
      <Headers form={form} />
      <Field label={words.fields.signingSecret} hint={words.hints.signingSecret}>
        {(about) => <SecretInput about={about} form={form} name="signingSecret" />}
      </Field>
      <Check label={words.fields.strict} hint={words.hints.strict} {...register("strict")} />
    </>
  );
}

/** A secret that is there cannot be read, only replaced. */
function SecretInput({ form, name, about }: { form: Form; name: "signingSecret" | `headers.${number}.value`; about: object }) {
  const words = useWords().hooks;
  const value = useWatch({ control: form.control, name });
  // Whether a header needs a name goes with its value.
  const isHeader = name !== "signingSecret";
  return isKept(value) ? (
    <span className="flex items-center gap-2">
      <Input {...about} readOnly value="••••••••" />
      <Button look="quiet" onClick={() => form.setValue(name, "", { shouldDirty: true })}>
        {words.replace}
      </Button>
    </span>
  ) : (
    <Input {...about} className="font-mono" {...form.register(name, { deps: isHeader ? [name.replace(/value$/, "name") as `headers.${number}.name`] : [] })} />
  );
}

function Headers({ form }: { form: Form }) {
  const words = useWords().hooks;
  const { errors } = form.formState;
  const { fields, append, remove } = useFieldArray({ control: form.control, name: "headers" });
  return (
    <fieldset>
      <legend className="mb-1 font-medium">{words.fields.headers}</legend>
      {fields.map((field, at) => (
        <div key={field.id} className="mb-2 flex flex-wrap items-end gap-2">
          <Field label={words.fields.headerName} className="flex-1 basis-32" error={errors.headers?.[at]?.name?.message}>
            {(about) => <Input {...about} className="font-mono" {...form.register(`headers.${at}.name`, { validate: (_, draft) => !isNameless(draft.headers[at]) || words.neededOf(words.fields.headerName) })} />}
          </Field>
          <Field label={words.fields.headerValue} className="flex-2 basis-40">
            {(about) => <SecretInput about={about} form={form} name={`headers.${at}.value`} />}
          </Field>
          <Check label={words.fields.secret} {...form.register(`headers.${at}.secret`)} />
          <Button onClick={() => remove(at)} aria-label={words.removeHeader(form.getValues(`headers.${at}.name`))}>
            {words.remove}
          </Button>
        </div>
      ))}
      <Button onClick={() => append({ name: "", value: "", secret: false })}>{words.addHeader}</Button>
      <p className="mt-1 text-small text-muted">{words.hints.headers}</p>
    </fieldset>
  );
}

function PromptFields({ form: { register, formState } }: { form: Form }) {
  const words = useWords().hooks;
  const { errors } = formState;
  const fits = (text: string): true | string => tooManyBytes(text, MAX_TEMPLATE_BYTES, words.tooLong) ?? true;
  return (
    <>
      <Field label={words.fields.template} hint={words.hints.template} error={errors.template?.message}>
        {(about) => <Area {...about} rows={4} {...register("template", { required: words.needed, validate: fits })} />}
      </Field>
      <div className="grid grid-cols-3 gap-4 max-sm:grid-cols-1">
        <Field label={words.fields.model} hint={words.hints.model}>
          {(about) => <Input {...about} {...register("model")} />}
        </Field>
        <Field label={words.fields.provider} hint={words.hints.provider}>
          {(about) => <Input {...about} {...register("provider")} />}
        </Field>
        <Field label={words.fields.invocations} hint={words.hints.invocations} error={errors.invocations?.message}>
          {(about) => <Input {...about} inputMode="numeric" placeholder="5" {...register("invocations", { validate: (text) => text.trim() === "" || isBetween(text, 1, MAX_INVOCATIONS) || words.between(1, MAX_INVOCATIONS) })} />}
        </Field>
      </div>
      <Check label={words.fields.ignoreInjection} hint={words.hints.ignoreInjection} {...register("ignoreInjection")} />
    </>
  );
}

function ScriptFields({ form: { control } }: { form: Form }) {
  const words = useWords().hooks;
  const fits = (text: string): true | string => tooManyBytes(text, MAX_SOURCE_BYTES, words.tooLong) ?? true;
  return (
    <Controller
      control={control}
      name="source"
      rules={{ required: words.needed, validate: fits }}
      render={({ field, fieldState }) => <CodeField language="javascript" label={words.fields.source} hint={words.hints.source} error={fieldState.error?.message} value={field.value} onChange={field.onChange} ref={field.ref} />}
    />
  );
}
