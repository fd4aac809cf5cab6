import { labelsOf } from "../wire/labels.ts";
import { useAgents, useHooks, useSessions, useTenantNames, useTenants } from "../wire/queries.ts";
import { useLanguage, useWords } from "../words/use-words.ts";
import { toldApart, toTheSecond } from "./apart.ts";
import { EVERY_TENANT, useEverywhere } from "./every-tenant.ts";
import { inCodes } from "./exact.ts";
import { Select } from "./field.tsx";

interface About {
  /** What is chosen; empty where nothing is. */
  readonly value: string;
  readonly className?: string;
  readonly choose: (value: string) => void;
}

/** One of several things by its name. What an address asks for is offered though nobody knows it any more. */
function Choose({ value, className = "w-auto! max-w-60", choose, label, any, all, known, ...rest }: About & { known?: string | undefined; label: string; any: string; all: readonly (readonly [string, string])[]; "data-search"?: true }) {
  return (
    <Select className={className} aria-label={label} value={value} onChange={(event) => choose(event.target.value)} {...rest}>
      <option value="">{any}</option>
      {value !== "" && !all.some(([id]) => id === value) && <option value={value}>{known || value}</option>}
      {all.map(([id, name]) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </Select>
  );
}

/** Whose something is, behind its name, where those of every tenant are offered. */
function useOf(): (name: string, tenantId: string | undefined) => string {
  const everywhere = useEverywhere();
  const tenants = useTenantNames();
  return (name, tenantId) => (everywhere && tenantId !== undefined ? `${name} · ${tenants.get(tenantId) ?? tenantId}` : name);
}

/** A hook, by its id; `known` is what one is called that is gone. */
export function ChooseHook(about: About & { known?: string | undefined }) {
  const words = useWords();
  const of = useOf();
  const hooks = useHooks().data ?? [];
  const whose = new Map(hooks.map(({ id, scope, tenant_id }) => [id, scope === "global" ? undefined : tenant_id]));
  return <Choose data-search {...about} label={words.hooks.hook} any={words.executions.anyHook} all={[...labelsOf(hooks)].map(([id, { name, event }]) => [id, of(event === undefined ? inCodes(name) : `${inCodes(name)} (${event})`, whose.get(id))] as const)} />;
}

/** An agent: by its name, which is the same in every tenant, or by the id that records of one tenant have. */
export function ChooseAgent({ by, ...about }: About & { by: "id" | "uuid" }) {
  const words = useWords();
  const of = useOf();
  const everywhere = useEverywhere() && by === "uuid";
  return <Choose {...about} label={words.chain.agent} any={words.turns.anyAgent} all={(useAgents(everywhere).data ?? []).map((agent) => [agent[by], of(agent.id, agent.tenantId)] as const)} />;
}

/** A conversation, by its key; `tenant` is whose it is, where those of every tenant are offered. */
export function ChooseSession({ value, tenant, choose, ...about }: Omit<About, "choose"> & { tenant: string | undefined; choose: (key: string, tenant: string | undefined) => void }) {
  const words = useWords();
  const of = useOf();
  const lines = useSessions(useEverywhere()).data ?? [];
  const language = useLanguage();
  const moment = toTheSecond(language);
  const apart = toldApart(lines.map(({ key, label, updated, tenantId }) => ({ key: idOf(key, tenantId), name: label || key, when: moment.format(new Date(updated)) })));
  const nameOf = (id: string, name: string): string => [name, apart.get(id)].filter(Boolean).join(" · ");
  const chosen = (to: string): void => {
    const line = lines.find(({ key, tenantId }) => idOf(key, tenantId) === to);
    choose(line?.key ?? "", line?.tenantId);
  };
  return (
    <Choose
      {...about}
      value={value === "" ? "" : idOf(value, tenant)}
      known={value}
      choose={chosen}
      label={words.executions.session}
      any={words.turns.anySession}
      all={lines.map(({ key, label, tenantId }) => [idOf(key, tenantId), of(nameOf(idOf(key, tenantId), label || key), tenantId)] as const)}
    />
  );
}

/** Two tenants may each have a conversation with the same key. */
const idOf = (key: string, tenant: string | undefined): string => (tenant === undefined ? key : `${tenant} ${key}`);

/** This tenant or all of them, for owners where there are several: what the address says is `all`, or nothing. */
export function ChooseTenants({ value, choose, className = "w-auto! max-w-60" }: About) {
  const words = useWords().rules;
  const several = (useTenants().data ?? []).length > 1;
  return several ? (
    <Select className={className} aria-label={words.tenant} value={value} onChange={(event) => choose(event.target.value)}>
      <option value="">{words.thisTenant}</option>
      <option value={EVERY_TENANT}>{words.allTenants}</option>
    </Select>
  ) : null;
}
