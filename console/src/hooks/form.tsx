import { useId } from "react";
import { Controller, type UseFormReturn, useWatch } from "react-hook-form";

import { clsx } from "../ui/clsx.ts";
import { CodeField } from "../ui/code-field.tsx";
import { Area, Check as Box, Field, Input, Select } from "../ui/field.tsx";
import { tooManyChars } from "../ui/too-long.ts";
import { useAgentsOf } from "../wire/queries.ts";
import { EVENTS, GATES, HANDLERS, SCOPES } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { isBetween, MAX_NAME_CHARS, MAX_PRIORITY, MAX_TIMEOUT_MS, MIN_PRIORITY } from "./bounds.ts";
import { ConditionSaid, MatcherSaid, useCheck } from "./check.tsx";
import { type Draft, EMPTY, metadataOf } from "./draft.ts";
import { HandlerFields } from "./handler-fields.tsx";
import { atOtherEvent } from "./moved.ts";

type Form = UseFormReturn<Draft>;

/** Every setting of a hook; `began` is what the form of a new one began with, and `tenant` whose one is that is there. Such a one
 * is switched off where that takes a reason, and not here. */
export function HookFields({ form, began, tenant }: { form: Form; began?: Draft; tenant?: string | undefined }) {
  const words = useWords().hooks;
  const { register, formState } = form;
  return (
    <div className="flex flex-col gap-4">
      <Field label={words.fields.name} error={formState.errors.name?.message}>
        {(about) => <Input {...about} {...register("name", { validate: (typed) => tooManyChars(typed, MAX_NAME_CHARS, words.reasonLong) ?? true })} />}
      </Field>
      <Where form={form} began={began} tenant={tenant} />
      <HandlerChoice form={form} />
      <HandlerFields form={form} />
      <Conditions form={form} tenant={tenant} />
      <Limits form={form} isNew={began !== undefined} />
      <Metadata form={form} />
    </div>
  );
}

function Where({ form, began, tenant }: { form: Form; began: Draft | undefined; tenant: string | undefined }) {
  const words = useWords();
  const { me } = useWire();
  const { register, control, setValue, getValues } = form;
  const scope = useWatch({ control, name: "scope" });
  const event = useWatch({ control, name: "event" });
  return (
    <>
      <div className="grid grid-cols-2 gap-4 max-sm:grid-cols-1">
        <Field label={words.hooks.fields.event} hint={`${GATES.includes(event) ? words.hooks.gate : words.hooks.observer}${words.colon}${words.events[event].when}`}>
          {(about) => (
            <Select
              {...about}
              value={event}
              onChange={(change) => {
                const to = EVENTS.find((one) => one === change.target.value) ?? event;
                const before = getValues();
                const after = atOtherEvent(before, began ?? EMPTY, to);
                for (const name of Object.keys(after) as (keyof Draft)[]) {
                  if (after[name] !== before[name]) {
                    setValue(name, after[name], { shouldDirty: true });
                  }
                }
              }}
            >
              {EVENTS.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </Select>
          )}
        </Field>
        <Field label={words.hooks.fields.scope} hint={words.hooks.hints.scope[scope]}>
          {(about) => (
            <Select {...about} {...register("scope")}>
              {SCOPES.filter((one) => one !== "global" || me.is_master_scope).map((one) => (
                <option key={one} value={one}>
                  {words.hooks.scopes[one]}
                </option>
              ))}
            </Select>
          )}
        </Field>
      </div>
      {scope === "agent" && <AgentChoice form={form} tenant={tenant} />}
    </>
  );
}

function AgentChoice({ form: { register, formState }, tenant }: { form: Form; tenant: string | undefined }) {
  const words = useWords().hooks;
  const agents = useAgentsOf(tenant);
  const error = useId();
  return (
    <fieldset aria-describedby={formState.errors.agents === undefined ? undefined : error}>
      <legend className="mb-1 font-medium">{words.fields.agents}</legend>
      <div className="flex flex-wrap gap-4">
        {agents.map((agent) => (
          <Box key={agent.uuid} label={agent.id} value={agent.uuid} {...register("agents", { validate: (chosen) => chosen.length > 0 || words.oneAgent })} />
        ))}
      </div>
      {formState.errors.agents !== undefined && <p id={error} role="alert" className="text-small text-block">{words.oneAgent}</p>}
    </fieldset>
  );
}

/** Which handler. `command` is there on every edition: where it cannot be chosen, it says why. */
function HandlerChoice({ form: { register, control } }: { form: Form }) {
  const words = useWords().hooks;
  const { me } = useWire();
  const chosen = useWatch({ control, name: "handler" });
  const noCommands = me.edition === "standard";
  return (
    <fieldset aria-describedby={noCommands ? "no-commands" : undefined}>
      <legend className="mb-1 font-medium">{words.fields.handler}</legend>
      <div className="grid grid-cols-4 gap-2 max-sm:grid-cols-2">
        {HANDLERS.map((handler) => {
          const off = handler === "command" && noCommands;
          return (
            <label
              key={handler}
              className={clsx(
                "flex items-center gap-2 rounded border px-3 py-1 max-sm:min-h-11",
                chosen === handler ? "border-accent bg-tint font-semibold text-accent" : "border-edge bg-surface",
                off ? "cursor-not-allowed bg-raised text-muted" : "cursor-pointer",
              )}
            >
              <input type="radio" value={handler} className="accent-accent" disabled={off} {...register("handler")} />
              {words.handlers[handler]}
            </label>
          );
        })}
      </div>
      <p id="no-commands" className="mt-1 text-small text-muted">
        {noCommands ? words.noCommands : words.hints.handlers[chosen]}
      </p>
    </fieldset>
  );
}

function Conditions({ form: { register, control }, tenant }: { form: Form; tenant: string | undefined }) {
  const words = useWords().hooks;
  const [matcher, condition, scope, agents] = useWatch({ control, name: ["matcher", "condition", "scope", "agents"] });
  const found = useCheck({ matcher, condition, agents: scope === "agent" ? agents : [] }, tenant);
  // What is said of an earlier text marks nothing in this one.
  const said = found?.about.condition === condition ? (found.condition ?? undefined) : undefined;
  const isWrongMatcher = found?.about.matcher === matcher && found.matcher?.ok === false;
  return (
    <>
      <div>
        <Field label={words.fields.matcher} hint={words.hints.matcher}>
          {(about) => <Input {...about} aria-invalid={isWrongMatcher || undefined} className="font-mono" placeholder="^(exec|write_file)$" {...register("matcher")} />}
        </Field>
        <MatcherSaid found={found} />
      </div>
      <Controller
        control={control}
        name="condition"
        render={({ field }) => (
          <CodeField
            language="cel"
            label={words.fields.condition}
            hint={words.hints.condition}
            example={'tool_name == "exec" && size(tool_input.command) > 80'}
            value={field.value}
            onChange={field.onChange}
            ref={field.ref}
            isWrong={said?.ok === false}
            said={said}
          />
        )}
      />
      <ConditionSaid found={found} />
    </>
  );
}

/** What people and programs keep with the hook. */
function Metadata({ form: { register, formState } }: { form: Form }) {
  const words = useWords().hooks;
  return (
    <Field label={words.fields.metadata} hint={words.hints.metadata} error={formState.errors.metadata?.message}>
      {(about) => <Area {...about} rows={2} className="font-mono" {...register("metadata", { validate: (typed) => metadataOf(typed) !== undefined || words.notObject })} />}
    </Field>
  );
}

function Limits({ form: { register, formState, control }, isNew }: { form: Form; isNew: boolean }) {
  const words = useWords().hooks;
  const event = useWatch({ control, name: "event" });
  const { errors } = formState;
  const between = (low: number, high: number) => (text: string) => isBetween(text, low, high) || words.between(low, high);
  const fallbacks = (
    <>
      <option value="block">{words.fallbacks.block}</option>
      <option value="allow">{words.fallbacks.allow}</option>
    </>
  );
  return (
    <>
      <div className="grid grid-cols-3 gap-4 max-sm:grid-cols-1">
        <Field label={words.fields.timeout} hint={words.hints.timeout(MAX_TIMEOUT_MS)} error={errors.timeoutMs?.message}>
          {(about) => <Input {...about} inputMode="numeric" {...register("timeoutMs", { validate: between(0, MAX_TIMEOUT_MS) })} />}
        </Field>
        <Field label={words.fields.onTimeout}>{(about) => <Select {...about} {...register("onTimeout")}>{fallbacks}</Select>}</Field>
        <Field label={words.fields.priority} hint={words.hints.priority} error={errors.priority?.message}>
          {(about) => <Input {...about} inputMode="numeric" {...register("priority", { validate: between(MIN_PRIORITY, MAX_PRIORITY) })} />}
        </Field>
        <Field label={words.fields.breaker} hint={words.hints.breaker}>
          {(about) => (
            <Select {...about} {...register("breaker")}>
              {(["all", "faults", "off"] as const).map((breaker) => (
                <option key={breaker} value={breaker}>
                  {words.breakers[breaker]}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label={words.fields.onTrip} hint={words.hints.onTrip}>
          {(about) => <Select {...about} {...register("onTrip")}>{fallbacks}</Select>}
        </Field>
      </div>
      {(event === "pre_tool_use" || event === "user_prompt_submit") && <Box label={words.fields.mayRewrite} hint={words.hints.mayRewrite} {...register("mayRewrite")} />}
      {isNew && <Box label={words.fields.enabled} {...register("enabled")} />}
    </>
  );
}
