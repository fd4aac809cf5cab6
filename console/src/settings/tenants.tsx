import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Button } from "../ui/button.tsx";
import { Confirm, Dialog } from "../ui/dialog.tsx";
import { Field, Input } from "../ui/field.tsx";
import { PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { Sign } from "../ui/sign.tsx";
import { Actions, Cell, Row, Table } from "../ui/table.tsx";
import { When } from "../ui/when.tsx";
import { useTenants } from "../wire/queries.ts";
import { hasSession } from "../wire/session.ts";
import type { Tenant } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";

/** The slug of the tenant that is always there. */
const DEFAULT_SLUG = "default";

/** Who lives on this host, apart from each other. */
export function TenantsPart() {
  const words = useWords().settings.tenants;
  const { me } = useWire();
  const tenants = useTenants();
  const [makes, setMakes] = useState(false);
  const several = me.edition === "standard";
  return (
    <>
      <PageHead
        title={words.title}
        answer={tenants.data === undefined ? words.loading : several ? words.answer(tenants.data.length) : words.lite}
        actions={
          several && (
            <Button look="primary" onClick={() => setMakes(true)}>
              {words.create}
            </Button>
          )
        }
      />
      {tenants.error !== null && <Problem error={tenants.error} retry={() => void tenants.refetch()} />}
      {tenants.data !== undefined && <TenantTable tenants={tenants.data} />}
      <Dialog open={makes} onClose={() => setMakes(false)} title={words.create} about={words.createAbout}>
        <NewTenant onClose={() => setMakes(false)} />
      </Dialog>
    </>
  );
}

function NewTenant({ onClose }: { onClose: () => void }) {
  const all = useWords();
  const words = all.settings.tenants;
  const { connection } = useWire();
  const queries = useQueryClient();
  const [slug, setSlug] = useState("");
  const [name, setName] = useState("");
  const create = useMutation({
    mutationFn: () => connection.request("tenants.create", { slug: slug.trim(), ...(name.trim() === "" ? {} : { name: name.trim() }) }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["settings", "tenants"] });
      onClose();
    },
  });
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate();
      }}
    >
      <Field label={words.slug} hint={words.slugHint}>
        {(about) => <Input {...about} className="font-mono" required maxLength={63} value={slug} onChange={(event) => setSlug(event.target.value)} />}
      </Field>
      <Field label={words.name} hint={words.nameHint}>
        {(about) => <Input {...about} maxLength={255} value={name} onChange={(event) => setName(event.target.value)} />}
      </Field>
      {create.error !== null && <Problem error={create.error} />}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>{all.cancel}</Button>
        <Button look="primary" type="submit" disabled={create.isPending || slug.trim() === ""}>
          {words.createAction}
        </Button>
      </div>
    </form>
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
              <span className="font-semibold">{tenant.name || tenant.slug}</span>
              {tenant.id === me.tenant_id && <span className="ml-2 rounded bg-tint px-1.5 text-small text-accent">{words.here}</span>}
            </Cell>
            <Cell name={words.slug}>
              <code>{tenant.slug}</code>
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
        title={words.closeTitle(closes?.name || closes?.slug || "")}
        about={words.closeAbout + (closes?.id === me.tenant_id ? ` ${words.closeHere}` : "")}
        action={words.close}
        act={async () => {
          await connection.request("tenants.update", { tenantId: closes?.id ?? "", enabled: false });
          await fresh();
        }}
      />
    </>
  );
}
