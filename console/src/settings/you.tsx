import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Card, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { Actions, Cell, Row, Table } from "../ui/table.tsx";
import { When } from "../ui/when.tsx";
import { missingScopes } from "../wire/may.ts";
import { hasSession } from "../wire/session.ts";
import type { ConsoleSession } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { device } from "./device.ts";
import { mayDo } from "./may.ts";
import { useDevices } from "./queries.ts";

/** Who one is here, and where one is signed in. */
export function YouPart() {
  const words = useWords();
  const { me } = useWire();
  const signedIn = hasSession();
  const missing = missingScopes(me);
  const devices = useDevices(signedIn);
  return (
    <>
      <PageHead title={words.settings.parts.you} answer={words.settings.you.answer(me.user_id, words.roles[me.role], me.tenant_name || me.tenant_slug)} />
      <Card className="mb-6 p-4">
        <h2 className="mb-1 font-semibold">{words.settings.you.may}</h2>
        <ul className="list-disc pl-5">
          {mayDo(me, signedIn).map((one) => (
            <li key={one}>{words.settings.mayDo[one]}</li>
          ))}
        </ul>
        {signedIn && missing.length > 0 && (
          <p className="mt-2 text-muted">
            {words.settings.you.keyLacks(
              missing.map((scope) => words.settings.keys.scope[scope].name),
              missing,
            )}
          </p>
        )}
        {!signedIn && <p className="mt-2 text-muted">{words.settings.you.nobody}</p>}
      </Card>
      {signedIn && (
        <>
          <h2 className="mb-2 text-large font-semibold">{words.settings.devices.title}</h2>
          {devices.error !== null && <Problem error={devices.error} retry={() => void devices.refetch()} />}
          {devices.data !== undefined && <Devices devices={devices.data} />}
        </>
      )}
    </>
  );
}

function Devices({ devices }: { devices: readonly ConsoleSession[] }) {
  const all = useWords();
  const words = all.settings.devices;
  const { connection } = useWire();
  const queries = useQueryClient();
  const [asks, setAsks] = useState<"all" | ConsoleSession>();
  const fresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["settings", "devices"] });
  const end = useMutation({ mutationFn: (id: string) => connection.request("auth.sessions.revoke", { id }), onSuccess: fresh });
  const close = (): void => setAsks(undefined);
  return (
    <>
      <p className="mb-2 text-muted">{words.about}</p>
      {end.error !== null && <Problem error={end.error} />}
      <Table label={words.title} head={[words.device, words.role, words.since, words.seen, all.actions]}>
        {devices.map((one) => (
          <Row key={one.id} name={one.id}>
            <Cell>
              <span className="font-semibold" title={one.device}>
                {name(one.device, words.unknown, words.on)}
              </span>
              {one.current && <span className="ml-2 rounded bg-tint px-1.5 text-small text-accent">{words.current}</span>}
            </Cell>
            <Cell name={words.role}>{all.roles[one.role]}</Cell>
            <Cell name={words.since}>
              <When at={one.createdAt} />
            </Cell>
            <Cell name={words.seen}>
              <When at={one.seenAt} />
            </Cell>
            <Actions>
              {one.current ? (
                <Button onClick={() => setAsks(one)}>{all.frame.signOut}</Button>
              ) : (
                <Button disabled={end.isPending} onClick={() => end.mutate(one.id)}>
                  {words.end}
                </Button>
              )}
            </Actions>
          </Row>
        ))}
      </Table>
      {devices.length > 1 && (
        <Button look="danger" className="mt-3" onClick={() => setAsks("all")}>
          {words.endAll}
        </Button>
      )}
      <Confirm
        open={asks !== undefined}
        onClose={close}
        title={asks === "all" ? words.endAllTitle : words.endThisTitle}
        about={asks === "all" ? words.endAllAbout(devices.length) : words.endThisAbout}
        action={asks === "all" ? words.endAll : all.frame.signOut}
        act={() => connection.request("auth.sessions.revoke", asks === "all" || asks === undefined ? { all: true } : { id: asks.id })}
      />
    </>
  );
}

function name(agent: string, unknown: string, on: (browser: string, system: string) => string): string {
  const { browser, system } = device(agent);
  if (browser === "" && system === "") {
    return agent === "unknown" || agent === "" ? unknown : agent;
  }
  return browser === "" || system === "" ? browser + system : on(browser, system);
}
