import { Link } from "@tanstack/react-router";

import { useConfigured } from "../wire/queries.ts";
import { Name } from "./name.tsx";

interface About {
  /** The rule; a hook of the configuration has none. */
  readonly id: string | null | undefined;
  readonly name: string;
}

/** The name of a hook, which leads to it: to the rule, or to the hook of the configuration that has the name. */
export function HookLink({ id, name }: About) {
  const configured = useConfigured().data ?? [];
  const of = configured.find((hook) => hook.name === name && hook.family !== "skill");
  const shown = <Name of={name || (id ?? "")} />;
  const look = "font-semibold text-accent underline";
  if (typeof id === "string") {
    return (
      <Link to="/hooks/$id" params={{ id }} className={look}>
        {shown}
      </Link>
    );
  }
  return of === undefined ? (
    <span className="font-semibold">{shown}</span>
  ) : (
    <Link to="/hooks/configured/$family/$name" params={{ family: of.family, name: of.name }} className={look}>
      {shown}
    </Link>
  );
}
