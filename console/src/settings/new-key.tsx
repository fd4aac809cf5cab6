import { useMutation } from "@tanstack/react-query";
import { useEffect, useId, useMemo, useState } from "react";
import { useForm, useWatch } from "react-hook-form";

import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Check, Field, Input, Select } from "../ui/field.tsx";
import { Problem } from "../ui/problem.tsx";
import { tooManyChars } from "../ui/too-long.ts";
import { dropTyped, formPlace, keepTyped, keptTyped } from "../wire/drafts.ts";
import type { KeyScope, Payload } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { MAX_NAME } from "./bounds.ts";
import { LASTS, SCOPES } from "./key-state.ts";
import { useMembers } from "./queries.ts";

const DAY_S = 86_400;

interface Wish {
  name: string;
  owner: string;
  scopes: KeyScope[];
  days: string;
}

/** Makes a key. What was typed stays when that fails, and when the dialog is closed and opened again. */
export function NewKey({ open, onClose, onMade }: { open: boolean; onClose: () => void; onMade: (made: Payload<"api_keys.create">) => void }) {
  const words = useWords().settings.keys;
  const { me } = useWire();
  const place = formPlace(me, "api_keys.create");
  const began = useMemo((): Wish => ({ name: "", owner: me.user_id, scopes: ["operator.read"], days: String(LASTS[1]) }), [me.user_id]);
  // What was typed comes back after a session ended. What is too long is told while it is typed.
  const [first] = useState(() => keptTyped<Wish>(place) ?? began);
  const form = useForm<Wish>({ defaultValues: first, mode: "onChange" });
  useEffect(() => form.subscribe({ formState: { values: true }, callback: ({ values }) => keepTyped(place, values, began) }), [form, place, began]);
  return (
    <Dialog open={open} onClose={onClose} title={words.create} about={words.createAbout}>
      <KeyForm
        form={form}
        onClose={onClose}
        onMade={(made) => {
          form.reset(began);
          dropTyped(place);
          onMade(made);
        }}
      />
    </Dialog>
  );
}

function KeyForm({ form, onClose, onMade }: { form: ReturnType<typeof useForm<Wish>>; onClose: () => void; onMade: (made: Payload<"api_keys.create">) => void }) {
  const all = useWords();
  const words = all.settings.keys;
  const { connection, me } = useWire();
  const members = useMembers().data ?? [];
  const list = useId();
  const long = (text: string): string | undefined => tooManyChars(text, MAX_NAME, all.hooks.reasonLong);
  const { register, formState, control, handleSubmit } = form;
  const owner = useWatch({ control, name: "owner" });
  const make = useMutation({
    mutationFn: ({ name, owner: of, scopes, days }: Wish) =>
      connection.request("api_keys.create", {
        name: name.trim(),
        scopes,
        ...(of.trim() === "" ? {} : { owner: of.trim() }),
        ...(Number(days) === 0 ? {} : { expiresIn: Number(days) * DAY_S }),
      }),
    onSuccess: onMade,
  });
  return (
    <form className="flex flex-col gap-3" noValidate onSubmit={(event) => void handleSubmit((wish) => make.mutate(wish))(event)}>
      <Field label={words.name} hint={words.nameHint} error={formState.errors.name?.message}>
        {(about) => <Input {...about} {...register("name", { validate: (text) => (text.trim() === "" ? all.hooks.needed : (long(text) ?? true)) })} />}
      </Field>
      <Field label={words.owner} hint={owner.trim() === me.user_id ? words.ownerYou : members.some(({ userId }) => userId === owner.trim()) ? words.ownerHint : words.ownerNew} error={formState.errors.owner?.message}>
        {(about) => (
          <>
            <Input {...about} list={list} {...register("owner", { validate: (text) => long(text) ?? true })} />
            <datalist id={list}>
              {members.map(({ userId }) => (
                <option key={userId} value={userId} />
              ))}
            </datalist>
          </>
        )}
      </Field>
      <fieldset>
        <legend className="mb-1 font-medium">{words.scopes}</legend>
        <div className="flex flex-col gap-1">
          {SCOPES.map(([scope]) => (
            <Check key={scope} label={words.scope[scope].name} hint={words.scope[scope].about} value={scope} {...register("scopes", { validate: (chosen) => chosen.length > 0 || words.oneScope })} />
          ))}
        </div>
        {formState.errors.scopes !== undefined && <p className="text-small text-block">{words.oneScope}</p>}
      </fieldset>
      <Field label={words.lasts}>
        {(about) => (
          <Select {...about} {...register("days")}>
            {LASTS.map((days) => (
              <option key={days} value={days}>
                {days === 0 ? words.noEnd : words.days(days)}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {make.error !== null && <Problem error={make.error} labels={{ owner: words.owner, name: words.name }} />}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>{all.cancel}</Button>
        <Button look="primary" type="submit" disabled={make.isPending}>
          {words.createAction}
        </Button>
      </div>
    </form>
  );
}
