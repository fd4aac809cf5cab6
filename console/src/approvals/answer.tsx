import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { Button } from "../ui/button.tsx";
import { Field, Input } from "../ui/field.tsx";
import { Problem } from "../ui/problem.tsx";
import { SaidText } from "../ui/said-text.tsx";
import { Sign } from "../ui/sign.tsx";
import { tooManyBytes } from "../ui/too-long.ts";
import { Timed } from "../ui/when.tsx";
import type { Approval } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { keepReason, keptReason, MAX_REASON_BYTES, reasonPlace } from "./reason.ts";

/** The answer to a question: yes or no, once, or what somebody said already. */
export function Answer({ approval }: { approval: Approval }) {
  const words = useWords().approvals;
  const { hooks } = useWords();
  const { connection, me } = useWire();
  const queries = useQueryClient();
  const place = reasonPlace(me, approval.id);
  const [reason, setReason] = useState(() => keptReason(place));
  // What is too long is told, and nothing of it is cut off.
  const long = tooManyBytes(reason, MAX_REASON_BYTES, hooks.tooLong);
  const isLong = long !== undefined;
  const answer = useMutation({
    mutationFn: (yes: boolean) => connection.request(yes ? "approvals.approve" : "approvals.refuse", { id: approval.id, ...(reason === "" ? {} : { reason }) }),
    onSettled: () => queries.invalidateQueries({ queryKey: ["approvals"] }),
  });
  // What came of it since the answer stands in the approval itself.
  const now = approval.state === "waiting" ? (answer.data?.approval ?? approval) : approval;
  useEffect(() => keepReason(place, now.state === "waiting" ? reason : ""), [place, now.state, reason]);
  if (now.state !== "waiting") {
    return (
      <p className="mt-3 flex flex-wrap items-center gap-2" role="status">
        <StateWord approval={now} />
        {now.answered_by !== undefined && <span>{words.answeredBy(now.answered_by)}</span>}
        {now.note !== undefined && now.note !== "" && (
          <span className="text-muted">
            <SaidText text={now.note} />
          </span>
        )}
      </p>
    );
  }
  if (!now.approvers.you) {
    return (
      <p className="mt-3 text-small text-muted">
        <Timed says={words.until} at={now.expires_at} />
      </p>
    );
  }
  return (
    <div className="mt-3">
      {answer.error !== null && <Problem error={answer.error} />}
      <Field label={words.reason} hint={words.reasonHint} error={long}>
        {(about) => <Input {...about} value={reason} onChange={(event) => setReason(event.target.value)} />}
      </Field>
      <div className="mt-3 flex flex-wrap gap-2">
        <Button look="primary" className="max-sm:flex-1" disabled={answer.isPending || isLong} onClick={() => answer.mutate(true)}>
          {words.approve}
        </Button>
        <Button look="danger" className="max-sm:flex-1" disabled={answer.isPending || isLong} onClick={() => answer.mutate(false)}>
          {words.refuse}
        </Button>
        <span className="ml-auto self-center text-small text-muted max-sm:w-full">
          <Timed says={words.until} at={approval.expires_at} />
        </span>
      </div>
    </div>
  );
}

export function StateWord({ approval }: { approval: Approval }) {
  const words = useWords().approvals;
  const kind = { waiting: "ask", approved: "allow", used: "allow", refused: "block", void: "off", expired: "timeout" } as const;
  return <Sign kind={kind[approval.state]} word={words.states[approval.state]} />;
}
