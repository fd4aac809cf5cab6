import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Button } from "../ui/button.tsx";
import { Output } from "../ui/output.tsx";
import { Problem } from "../ui/problem.tsx";
import type { TurnExecution } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { offersOutput } from "./offers-output.ts";

/** What a command or a script wrote in this run, for those who may read it. That they did is recorded, so they ask for it. */
export function Wrote({ execution }: { execution: TurnExecution }) {
  const words = useWords();
  const mayRead = useMay("admin");
  const { connection } = useWire();
  const [isAsked, setIsAsked] = useState(false);
  const found = useQuery({
    queryKey: ["execution", execution.id, mayRead],
    queryFn: () => connection.request("hooks.execution.get", { id: execution.id }),
    enabled: isAsked,
  });
  if (!offersOutput(execution, mayRead)) {
    return null;
  }
  if (!isAsked) {
    return (
      <p className="mt-3">
        <Button onClick={() => setIsAsked(true)}>{words.output.show}</Button> <span className="text-muted">{words.output.recorded}</span>
      </p>
    );
  }
  if (found.data === undefined) {
    return found.error === null ? <p className="mt-3 text-muted">{words.output.loading}</p> : <Problem error={found.error} retry={() => void found.refetch()} />;
  }
  const { stdout, stderr } = found.data;
  if ((stdout ?? stderr ?? null) === null) {
    return <p className="mt-3 text-muted">{words.output.notKept}</p>;
  }
  return (
    <div data-testid="wrote">
      <Output name={words.turns.account.stdout} head={stdout} />
      <Output name={words.turns.account.stderr} head={stderr} />
    </div>
  );
}
