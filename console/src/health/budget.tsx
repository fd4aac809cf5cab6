import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Field, Input } from "../ui/field.tsx";
import { Card } from "../ui/page.tsx";
import { Sign } from "../ui/sign.tsx";
import { Timed } from "../ui/when.tsx";
import type { Budget } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { isLow } from "./wrong.ts";

/** The moment at which a month is over that begins at `start`, a date. Pure. */
export function rollover(start: string): string {
  const [year = 1970, month = 1] = start.split("-").map(Number);
  return new Date(Date.UTC(year, month, 1)).toISOString();
}

/** What judges may spend: how much is left, until when, and how an owner changes it. */
export function BudgetCard({ budget }: { budget: Budget }) {
  const words = useWords().rules.budget;
  const owner = useMay("owner");
  const [changes, setChanges] = useState(false);
  const { budgetTotal, used, remaining, monthStart } = budget;
  const isNone = budgetTotal <= 0;
  const part = isNone ? 0 : Math.min(100, Math.round((used / budgetTotal) * 100));
  return (
    <Card className="p-4">
      <h2 className="text-large font-semibold">{words.title}</h2>
      <p className="mb-2 text-muted">{words.about}</p>
      <p className="font-semibold" data-testid="budget">
        {isNone ? words.zero : words.used(used, budgetTotal)}
      </p>
      {!isNone && <progress aria-label={words.used(used, budgetTotal)} className="my-1 h-2 w-full" max={100} value={part} />}
      <p className="text-small text-muted">
        {!isNone && `${words.left(Math.max(0, remaining))} · `}
        <Timed says={words.again} at={rollover(monthStart)} />
      </p>
      {remaining <= 0 ? (
        <p className="mt-2">
          <Sign kind="block" word={words.spent} /> {isNone ? words.overZero : words.over}
        </p>
      ) : (
        isLow(budget) && (
          <p className="mt-2">
            <Sign kind="ask" word={words.isLow} /> {words.low}
          </p>
        )
      )}
      {owner && (
        <Button className="mt-3" onClick={() => setChanges(true)}>
          {words.change}
        </Button>
      )}
      {changes && <ChangeBudget budget={budget} onClose={() => setChanges(false)} />}
    </Card>
  );
}

function ChangeBudget({ budget, onClose }: { budget: Budget; onClose: () => void }) {
  const words = useWords().rules.budget;
  const { connection, me } = useWire();
  const queries = useQueryClient();
  const [text, setText] = useState(String(budget.budgetTotal));
  const total = Number(text);
  const good = text.trim() !== "" && Number.isSafeInteger(total) && total >= 0;
  const by = total - budget.budgetTotal;
  return (
    <Confirm
      open
      onClose={onClose}
      title={words.change}
      about={!good || by === 0 ? words.about : total === 0 ? words.toZero : by > 0 ? words.raises(by) : words.lowers(-by)}
      action={words.save}
      ready={good && by !== 0}
      reasonHint={words.reasonHint}
      act={async (reason) => {
        await connection.request("hooks.budget.set", { tenantId: me.tenant_id, budgetTotal: total, reason });
        await queries.invalidateQueries({ queryKey: ["budget"] });
      }}
    >
      <Field label={words.total} hint={words.totalHint} error={good ? undefined : words.bad}>
        {(about) => <Input {...about} inputMode="numeric" value={text} onChange={(event) => setText(event.target.value)} />}
      </Field>
    </Confirm>
  );
}
