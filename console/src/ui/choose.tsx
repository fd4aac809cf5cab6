import { labelsOf } from "../wire/labels.ts";
import { useAgents, useHooks, useSessions, useTenants } from "../wire/queries.ts";
import { useWords } from "../words/use-words.ts";
import { EVERY_TENANT } from "./every-tenant.ts";
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

/** A hook, by its id; `known` is what one is called that is gone. */
export function ChooseHook(about: About & { known?: string | undefined }) {
  const words = useWords();
  return <Choose data-search {...about} label={words.hooks.hook} any={words.executions.anyHook} all={[...labelsOf(useHooks().data ?? [])].map(([id, { name, event }]) => [id, event === undefined ? name : `${name} (${event})`] as const)} />;
}

/** An agent: by its name, or by the id that records have. */
export function ChooseAgent({ by, ...about }: About & { by: "id" | "uuid" }) {
  const words = useWords();
  return <Choose {...about} label={words.chain.agent} any={words.turns.anyAgent} all={(useAgents().data ?? []).map((agent) => [agent[by], agent.id] as const)} />;
}

/** A conversation, by its key. */
export function ChooseSession(about: About) {
  const words = useWords();
  return <Choose {...about} label={words.executions.session} any={words.turns.anySession} all={(useSessions().data ?? []).map(({ key, label }) => [key, label || key] as const)} />;
}

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
