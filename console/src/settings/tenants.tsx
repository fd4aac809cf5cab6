import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { inCodes } from "../ui/exact.ts";
import { Field, Input } from "../ui/field.tsx";
import { MakeForm, Managed, Own } from "../ui/managed.tsx";
import { Name } from "../ui/name.tsx";
import { Problem } from "../ui/problem.tsx";
import { Sign } from "../ui/sign.tsx";
import { Actions, Cell, Row, Table } from "../ui/table.tsx";
import { tooManyChars } from "../ui/too-long.ts";
import { When } from "../ui/when.tsx";
import { useTenants } from "../wire/queries.ts";
import { hasSession } from "../wire/session.ts";
import type { Tenant } from "../wire/types.ts";
import { useDraft } from "../wire/use-draft.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { MAX_NAME, MAX_SLUG } from "./bounds.ts";

/** The slug of the tenant that is always there. */
const DEFAULT_SLUG = "default";

/** Who lives on this host, apart from each other. */
export function TenantsPart() {
  const words = useWords().settings.tenants;
  const { me } = useWire();
  const found = useTenants();
  const several = me.edition === "standard";
  return (
    <Managed
      title={words.title}
      answer={found.data === undefined ? words.loading : several ? words.answer(found.data.length) : words.lite}
      found={found}
      making={several ? { action: words.create, about: words.createAbout, form: (onClose) => <NewTenant onClose={onClose} /> } : undefined}
    >
      {(tenants) => <TenantTable tenants={tenants} />}
    </Managed>
  );
}

/** What a form for a new tenant begins with. */
const NO_TENANT = { slug: "", name: "" };

function NewTenant({ onClose }: { onClose: () => void }) {
  const words = useWords().settings.tenants;
  const { connection } = useWire();
  const queries = useQueryClient();
  const { hooks } = useWords();
  const { typed, set, drop } = useDraft("tenants.create", NO_TENANT);
  const { slug, name } = typed;
  const long = { slug: tooManyChars(slug, MAX_SLUG, hooks.reasonLong), name: tooManyChars(name, MAX_NAME, hooks.reasonLong) };
  const create = async (): Promise<void> => {
    await connection.request("tenants.create", { slug: slug.trim(), ...(name.trim() === "" ? {} : { name: name.trim() }) });
    drop();
    await queries.invalidateQueries({ queryKey: ["settings", "tenants"] });
  };
  return (
    <MakeForm action={words.createAction} ready={slug.trim() !== "" && long.slug === undefined && long.name === undefined} make={create} onClose={onClose} labels={{ slug: words.slug, name: words.name }}>
      <Field label={words.slug} hint={words.slugHint} error={long.slug}>
        {(about) => <Input {...about} className="font-mono" required value={slug} onChange={(event) => set({ slug: event.target.value, name })} />}
      </Field>
      <Field label={words.name} hint={words.nameHint} error={long.name}>
        {(about) => <Input {...about} value={name} onChange={(event) => set({ slug, name: event.target.value })} />}
      </Field>
    </MakeForm>
  );
}

function TenantTable({ tenants }: { tenants: readonly Tenant[] }) {
  const all = useWords();
  const words = all.settings.tenants;
  const { connection, me, goTo } = useWire();
  const queries = useQueryClient();
  const [closes, setCloses] = useState<Tenant>();
  const fresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["settings", "tenants"] });
  const open = useMutation({ mutationFn: (tenantId: string) => connection.request("tenants.update", { tenantId, enabled: true }), onSuccess: fresh });
  const go = useMutation({ mutationFn: goTo });
  return (
    <>
      {open.error !== null && <Problem error={open.error} />}
      {go.error !== null && <Problem error={go.error} />}
      <Table label={words.title} head={[words.tenant, words.slug, words.state, words.since, all.actions]}>
        {tenants.map((tenant) => (
          <Row key={tenant.id} name={tenant.slug}>
            <Cell>
              <span className="font-semibold"><Name of={tenant.name || tenant.slug} /></span>
              {tenant.id === me.tenant_id && <Own>{words.here}</Own>}
            </Cell>
            <Cell name={words.slug}>
              <code><Name of={tenant.slug} /></code>
            </Cell>
            <Cell name={words.state}>
              <Sign kind={tenant.enabled ? "allow" : "off"} word={tenant.enabled ? words.open : words.closed} />
            </Cell>
            <Cell name={words.since}>
              <When at={tenant.createdAt} />
            </Cell>
            <Actions>
              {tenant.enabled && tenant.id !== me.tenant_id && hasSession() && (
                <Button aria-label={words.goWhich(tenant.name || tenant.slug)} disabled={go.isPending} onClick={() => go.mutate(tenant.slug)}>
                  {words.go}
                </Button>
              )}
              {tenant.enabled && tenant.slug !== DEFAULT_SLUG && (
                <Button look="danger" aria-label={words.closeWhich(tenant.name || tenant.slug)} onClick={() => setCloses(tenant)}>
                  {words.close}
                </Button>
              )}
              {!tenant.enabled && (
                <Button aria-label={words.openWhich(tenant.name || tenant.slug)} disabled={open.isPending} onClick={() => open.mutate(tenant.id)}>
                  {words.letIn}
                </Button>
              )}
            </Actions>
          </Row>
        ))}
      </Table>
      <Confirm
        open={closes !== undefined}
        onClose={() => setCloses(undefined)}
        title={words.closeTitle(inCodes(closes?.name || closes?.slug || ""))}
        about={words.closeAbout + (closes?.id === me.tenant_id ? ` ${words.closeHere}` : "")}
        action={words.close}
        reasonHint={all.settings.reasonHint}
        act={async (reason) => {
          await connection.request("tenants.update", { tenantId: closes?.id ?? "", enabled: false, reason });
          await fresh();
        }}
      />
    </>
  );
}
