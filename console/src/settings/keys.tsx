import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";

import { Button } from "../ui/button.tsx";
import { CopyField } from "../ui/copy.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { inCodes } from "../ui/exact.ts";
import { Check } from "../ui/field.tsx";
import { Name } from "../ui/name.tsx";
import { Card, Empty, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { Sign } from "../ui/sign.tsx";
import { Actions, Cell, Row, Table } from "../ui/table.tsx";
import { Timed, useNow, When } from "../ui/when.tsx";
import type { ApiKey, Payload } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { keyState } from "./key-state.ts";
import { NewKey } from "./new-key.tsx";
import { useKeys } from "./queries.ts";

type Made = Payload<"api_keys.create">;

/** The keys of programs. */
export function KeysPart() {
  const words = useWords().settings.keys;
  const keys = useKeys();
  const queries = useQueryClient();
  const now = useNow();
  const navigate = useNavigate();
  const { all } = useSearch({ strict: false }) as { all?: string };
  const [makes, setMakes] = useState(false);
  const [made, setMade] = useState<Made>();
  const known = keys.data ?? [];
  const good = known.filter((key) => keyState(key, now) === "good");
  const shown = all === undefined ? good : known;
  return (
    <>
      <PageHead
        title={words.title}
        answer={keys.data === undefined ? words.loading : words.answer(good.length)}
        actions={
          <Button look="primary" onClick={() => setMakes(true)}>
            {words.create}
          </Button>
        }
      />
      {keys.error !== null && <Problem error={keys.error} retry={() => void keys.refetch()} />}
      {made !== undefined && <ShownOnce made={made} onDone={() => setMade(undefined)} />}
      {known.length > good.length && (
        <div className="mb-3">
          <Check
            label={words.showAll}
            checked={all !== undefined}
            onChange={(event) => void navigate({ to: "/settings/$part", params: { part: "keys" }, search: { all: event.target.checked ? "yes" : undefined } as never, replace: true })}
          />
        </div>
      )}
      {keys.data !== undefined && shown.length === 0 && (
        <Empty title={words.empty}>
          <p>{words.emptyAbout}</p>
        </Empty>
      )}
      {shown.length > 0 && <KeyTable keys={shown} now={now} />}
      <NewKey
        open={makes}
        onClose={() => setMakes(false)}
        onMade={(one) => {
          setMade(one);
          setMakes(false);
          void queries.invalidateQueries({ queryKey: ["settings"] });
        }}
      />
    </>
  );
}

/** The one time that a key can be read. It is not stored. */
function ShownOnce({ made, onDone }: { made: Made; onDone: () => void }) {
  const words = useWords().settings.keys;
  return (
    <Card className="mb-4 border-accent! p-4">
      <h2 className="font-semibold">{words.madeTitle(inCodes(made.apiKey.name))}</h2>
      <p className="mb-2 text-muted">{words.madeAbout}</p>
      <CopyField text={made.key} label={words.theKey} className="max-w-160" />
      <div className="mt-3">
        <Button onClick={onDone}>{words.kept}</Button>
      </div>
    </Card>
  );
}

function KeyTable({ keys, now }: { keys: readonly ApiKey[]; now: number }) {
  const all = useWords();
  const words = all.settings.keys;
  const { connection, me } = useWire();
  const queries = useQueryClient();
  const [revokes, setRevokes] = useState<ApiKey>();
  return (
    <>
      <Table label={words.title} head={[words.key, words.owner, words.scopes, words.state, words.made, all.actions]}>
        {keys.map((key) => {
          const state = keyState(key, now);
          return (
            <Row key={key.id} name={key.name}>
              <Cell>
                <span className="block font-semibold"><Name of={key.name} /></span>
                <code className="text-muted">{`${key.prefix}…`}</code>
              </Cell>
              <Cell name={words.owner}>
                <span className="md:inline-block md:min-w-24">
                  <Name of={key.owner} />
                </span>
              </Cell>
              <Cell name={words.scopes}>
                <span>{key.scopes.map((scope) => words.scope[scope].name).join(", ")}</span>
              </Cell>
              <Cell name={words.state}>
                <Sign kind={state === "good" ? "allow" : "off"} word={words.states[state]} />{" "}
                {state === "good" && <span className="text-small text-muted">{key.expiresAt === null ? words.noEnd : <Timed says={words.until} at={key.expiresAt} />}</span>}
              </Cell>
              <Cell name={words.made}>
                <span className="text-muted">
                  <When at={key.createdAt} /> {key.createdBy !== "" && words.by(key.createdBy)}
                </span>
              </Cell>
              <Actions>
                {state === "good" && (
                  <Button look="danger" aria-label={words.revokeWhich(inCodes(key.name))} onClick={() => setRevokes(key)}>
                    {words.revoke}
                  </Button>
                )}
              </Actions>
            </Row>
          );
        })}
      </Table>
      <Confirm
        open={revokes !== undefined}
        onClose={() => setRevokes(undefined)}
        title={words.revokeTitle(inCodes(revokes?.name ?? ""))}
        about={words.revokeAbout(revokes?.prefix ?? "", revokes?.owner ?? "", revokes?.owner === me.user_id)}
        action={words.revoke}
        reasonHint={all.settings.reasonHint}
        act={async (reason) => {
          await connection.request("api_keys.revoke", { id: revokes?.id ?? "", reason });
          await queries.invalidateQueries({ queryKey: ["settings"] });
        }}
      />
    </>
  );
}
