import { Link } from "@tanstack/react-router";

import { useConfigured, useHooks } from "../wire/queries.ts";
import { Name } from "./name.tsx";

interface About {
  readonly name: string;
  /** The rule, where it is known; a hook of the configuration has none. */
  readonly id?: string | null | undefined;
  /** The family of a hook, where that is known: one without `id` is of the configuration then. */
  readonly family?: string;
}

/** The name of a hook, which leads to the hook where it is known which one that is: of two rules with one name nobody can tell. */
export function HookLink({ name, id, family }: About) {
  const rules = (useHooks().data ?? []).filter((hook) => (hook.name || hook.id) === name);
  const configured = (useConfigured().data ?? []).find((hook) => hook.name === name && hook.family !== "skill");
  const look = "font-semibold text-accent underline";
  const rule = id ?? (family === undefined && rules.length === 1 && configured === undefined ? rules[0]?.id : undefined);
  const of = family ?? (rules.length === 0 ? configured?.family : undefined);
  if (rule !== undefined) {
    return (
      <Link to="/hooks/$id" params={{ id: rule }} className={look}>
        <Name of={name || rule} />
      </Link>
    );
  }
  if (of !== undefined) {
    return (
      <Link to="/hooks/configured/$family/$name" params={{ family: of, name }} className={look}>
        <Name of={name} />
      </Link>
    );
  }
  return (
    <span className="font-semibold">
      <Name of={name} />
    </span>
  );
}
