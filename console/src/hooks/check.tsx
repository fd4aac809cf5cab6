import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";

/** How long nobody typed before it is looked at, in milliseconds. */
const QUIET_MS = 300;

/** Most tools that are named. */
const NAMED = 8;

/** What the server says of a matcher and a condition while they are typed. Nothing is run. */
export function Check({ matcher, condition }: { matcher: string; condition: string }) {
  const words = useWords().rules.check;
  const { connection } = useWire();
  const may = useMay("operator");
  const [asked, setAsked] = useState({ matcher, condition });
  useEffect(() => {
    const timer = setTimeout(() => setAsked({ matcher, condition }), QUIET_MS);
    return () => clearTimeout(timer);
  }, [matcher, condition]);
  const wanted = asked.matcher !== "" || asked.condition !== "";
  const found = useQuery({
    queryKey: ["check", asked],
    queryFn: () => connection.request("hooks.check", { ...(asked.matcher === "" ? {} : { matcher: asked.matcher }), ...(asked.condition === "" ? {} : { condition: asked.condition }) }),
    enabled: may && wanted,
    retry: false,
    placeholderData: (before) => before,
  }).data;
  const { matcher: tools, condition: cel } = (wanted ? found : undefined) ?? { matcher: null, condition: null };
  const named = tools?.matches.slice(0, NAMED).join(", ") ?? "";
  return (
    <div role="status" className="text-small" data-testid="check">
      {tools !== null && (
        <p className={tools.ok ? "text-muted" : "text-block"}>
          {tools.ok ? (tools.matches.length === 0 ? words.noTool : words.matches(tools.matches.length, named, tools.matches.length > NAMED)) : tools.error}
        </p>
      )}
      {cel !== null && (
        <p className={cel.ok ? "text-muted" : "text-block"}>
          {cel.ok ? words.good : `${cel.error ?? ""}${typeof cel.line === "number" ? ` ${words.place(cel.line, cel.column ?? 1)}` : ""}`}
        </p>
      )}
    </div>
  );
}
