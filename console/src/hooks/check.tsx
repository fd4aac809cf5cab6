import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";

import { useAgentsOf } from "../wire/queries.ts";
import type { ConditionCheck, MatcherCheck } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";

/** How long nobody typed before it is looked at, in milliseconds. */
const QUIET_MS = 300;

/** Most tools that are named. */
const NAMED = 8;

export interface Asked {
  readonly matcher: string;
  readonly condition: string;
  /** The agents that it is about; none means all. */
  readonly agents: readonly string[];
}

/** The tools of all `checks`, each once: a matcher is about the tools of several agents. Pure. */
export function together(checks: readonly MatcherCheck[]): MatcherCheck | null {
  const [first] = checks;
  return first === undefined ? null : { ...first, matches: [...new Set(checks.flatMap(({ matches }) => matches))].sort() };
}

/** What the server says of a matcher and a condition, and of which ones. */
export interface Checked {
  readonly about: Asked;
  readonly matcher: MatcherCheck | null;
  readonly condition: ConditionCheck | null;
}

/** Asks the server about a matcher and a condition of a hook of `tenant` while they are typed. Nothing is run. */
export function useCheck({ matcher, condition, agents }: Asked, tenant: string | undefined): Checked | undefined {
  const { connection } = useWire();
  const may = useMay("operator");
  const names = useAgentsOf(tenant).filter(({ uuid }) => agents.includes(uuid)).map(({ id }) => id);
  const typed = JSON.stringify({ matcher, condition, agents: names } satisfies Asked);
  const [asked, setAsked] = useState(typed);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(typed), QUIET_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const about = useMemo(() => JSON.parse(asked) as Asked, [asked]);
  const wanted = about.matcher !== "" || about.condition !== "";
  const found = useQuery({
    queryKey: ["check", about],
    queryFn: async () => {
      const what = { ...(about.matcher === "" ? {} : { matcher: about.matcher }), ...(about.condition === "" ? {} : { condition: about.condition }) };
      const checks = await Promise.all((about.agents.length === 0 ? [undefined] : about.agents).map((agentId) => connection.request("hooks.check", { ...what, ...(agentId === undefined ? {} : { agentId }) })));
      return { about, matcher: together(checks.flatMap((one) => one.matcher ?? [])), condition: checks[0]?.condition ?? null };
    },
    enabled: may && wanted,
    retry: false,
    placeholderData: (before) => before,
  }).data;
  return wanted ? found : undefined;
}

/** What the server said of the matcher, in words: below its field. */
export function MatcherSaid({ found }: { found: Checked | undefined }) {
  const words = useWords().rules.check;
  const tools = found?.matcher ?? null;
  const named = tools?.matches.slice(0, NAMED).join(", ") ?? "";
  const whose = found?.about.agents.join(", ") ?? "";
  return (
    <div role="status" className="text-small" data-testid="check">
      {tools !== null && (
        <p className={tools.ok ? "text-muted" : "text-block"}>
          {tools.ok ? (tools.matches.length === 0 ? words.noTool(whose) : words.matches(tools.matches.length, named, tools.matches.length > NAMED, whose)) : tools.error}
        </p>
      )}
    </div>
  );
}

/** What the server said of the condition, in words: below its field. */
export function ConditionSaid({ found }: { found: Checked | undefined }) {
  const words = useWords().rules.check;
  const cel = found?.condition ?? null;
  return (
    <div role="status" className="text-small" data-testid="check">
      {cel !== null && (
        <p className={cel.ok ? "text-muted" : "text-block"}>
          {cel.ok ? words.good : `${cel.error ?? ""}${typeof cel.line === "number" ? ` ${words.place(cel.line, cel.column ?? 1)}` : ""}`}
        </p>
      )}
    </div>
  );
}
