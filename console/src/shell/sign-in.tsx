import { type FormEvent, useEffect, useState } from "react";

import { Button } from "../ui/button.tsx";
import { Field, Input } from "../ui/field.tsx";
import { Card } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { SessionEnded, signIn } from "../wire/session.ts";
import { useWords } from "../words/use-words.ts";

/** Whether a secret is an API key: it has an owner. The token of the gateway is everybody's who speaks for others. Pure. */
export const isApiKey = (secret: string): boolean => secret.trim().startsWith("pintle_");

/** Who one is: a token, an API key, or a link. */
export function SignIn({ why, without, onDone }: { why: unknown; without: (() => void) | undefined; onDone: () => void }) {
  const words = useWords().signIn;
  const [token, setToken] = useState("");
  const [user, setUser] = useState("");
  const [tenant, setTenant] = useState("");
  const [failed, setFailed] = useState<unknown>();
  // A session that ended is no mistake of whoever had it.
  const isOut = failed === undefined && why instanceof SessionEnded;
  const error = isOut ? undefined : (failed ?? why);
  const [busy, setBusy] = useState(false);
  const isKey = isApiKey(token);
  useEffect(() => {
    document.title = `${words.title} · Pintle`;
  }, [words]);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn(token.trim(), user.trim(), tenant.trim());
      onDone();
    } catch (problem) {
      setFailed(problem);
      setBusy(false);
    }
  };
  return (
    <main className="mx-auto max-w-100 px-4 pt-[12vh]">
      <h1 className="text-title font-semibold">Pintle</h1>
      <p className="mb-4 text-muted">{words.answer}</p>
      {error !== undefined && <Problem error={error} />}
      {isOut && (
        <div role="status" className="my-2 rounded border-l-3 border-accent bg-tint px-3 py-2">
          <p className="font-semibold">{words.out}</p>
          <p>{why.wasTaken ? words.takenAbout : words.outAbout}</p>
          {why.hasDrafts && <p>{words.drafts}</p>}
        </div>
      )}
      {without !== undefined && (
        <div className="my-2">
          <p className="mb-1">{words.withoutAbout}</p>
          <Button onClick={without}>{words.without}</Button>
        </div>
      )}
      <Card className="p-4">
        <form className="flex flex-col gap-3" onSubmit={(event) => void submit(event)}>
          <Field label={words.token}>
            {(about) => <Input {...about} type="password" name="token" required value={token} onChange={(event) => setToken(event.target.value)} />}
          </Field>
          <Field label={words.user} hint={words.userHint}>
            {(about) => <Input {...about} name="user" required={!isKey} value={user} onChange={(event) => setUser(event.target.value)} />}
          </Field>
          <Field label={words.tenant} hint={words.tenantHint}>
            {(about) => <Input {...about} name="tenant" value={tenant} onChange={(event) => setTenant(event.target.value)} />}
          </Field>
          <div>
            <Button look="primary" type="submit" disabled={busy || token.trim() === "" || (!isKey && user.trim() === "")}>
              {words.action}
            </Button>
          </div>
        </form>
      </Card>
      <p className="mt-4 text-small text-muted">{words.link}</p>
    </main>
  );
}
