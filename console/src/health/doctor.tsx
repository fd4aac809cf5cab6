import type { UseMutationResult } from "@tanstack/react-query";

import { Button } from "../ui/button.tsx";
import { Card } from "../ui/page.tsx";
import { ExactBox } from "../ui/exact.tsx";
import { HookLink } from "../ui/hook-link.tsx";
import { Name } from "../ui/name.tsx";
import { Problem } from "../ui/problem.tsx";
import { SaidText } from "../ui/said-text.tsx";
import { Sign } from "../ui/sign.tsx";
import { Timed } from "../ui/when.tsx";
import type { DoctorFindings } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";
import { worstFirst } from "./wrong.ts";

/** Proves every guard through its real path, when somebody wants to know. */
export function Doctor({ run, found }: { run: UseMutationResult<DoctorFindings, Error, void>; found: DoctorFindings | undefined }) {
  const words = useWords().health.doctor;
  return (
    <Card className="mt-4 p-4">
      <h2 className="text-large font-semibold">{words.title}</h2>
      <p className="mb-2 text-muted">{words.about}</p>
      <Button disabled={run.isPending} onClick={() => run.mutate()}>
        {run.isPending ? words.runs : words.run}
      </Button>
      {run.error !== null && <Problem error={run.error} />}
      <div aria-live="polite">
        {found !== undefined && (
          <>
            <p className="mt-3 font-semibold">{words.armed(found.guards.armed, found.guards.total)}</p>
            <p className="text-muted">
              <Timed says={words.found} at={found.at} />
            </p>
            <ul data-testid="doctor">
              {worstFirst(found.checks).map((one, at) => (
                <li key={at} className="mt-2 border-t border-line pt-2">
                  <p className="flex flex-wrap items-center gap-2">
                    <Sign kind={one.state === "ok" ? "allow" : one.state === "note" ? "ask" : "error"} word={words.states[one.state]} />
                    <span className="text-muted">{one.what}</span>
                    {one.what === "guard" ? <HookLink name={one.name} /> : <span className="font-semibold"><Name of={one.name} /></span>}
                    {one.step !== null && <span className="text-muted">{one.step}</span>}
                  </p>
                  <p>
                    <SaidText text={one.message} />
                  </p>
                  {one.stderr !== "" && (
                    <ExactBox text={one.stderr} label={words.stderr} className="max-h-40 bg-raised p-2" />
                  )}
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </Card>
  );
}
