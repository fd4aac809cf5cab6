import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { Button } from "../ui/button.tsx";
import { Area, Check as Tick, Field, Input } from "../ui/field.tsx";
import { Empty, Page, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { Sign, type SignKind } from "../ui/sign.tsx";
import { Cell, Row, Table } from "../ui/table.tsx";
import type { PintleClient } from "../wire/client.ts";
import { useAgents, useHooks } from "../wire/queries.ts";
import type { Hook } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { compared, type Line, type Names, records } from "./exchange.ts";

/** Longer files are for the command line. */
const MOST_BYTES = 1024 * 1024;

/** What came of a record once it was taken; nothing while it was not. */
type Done = ReadonlyMap<number, Error | null>;

/** What the server says of a matcher and a condition, or why they cannot be read. */
async function unreadable(connection: PintleClient, { matcher, condition }: Line): Promise<string | undefined> {
  if (matcher === "" && condition === "") {
    return undefined;
  }
  const said = await connection.request("hooks.check", { ...(matcher === "" ? {} : { matcher }), ...(condition === "" ? {} : { condition }) });
  return [said.matcher, said.condition].find((one) => one !== null && !one.ok)?.error;
}

/** Takes hooks from a file: first it says what would come of each record. */
export function ImportPage() {
  const words = useWords();
  const { imports } = words.rules;
  const may = useMay("admin");
  const hooks = useOwn();
  const agents = useAgents();
  const [text, setText] = useState("");
  const [bad, setBad] = useState<string>();
  const all = useMemo(() => read(text), [text]);
  if (!may) {
    return (
      <Page>
        <Empty isPage title={words.hooks.mayNot}>
          {words.hooks.mayNotAbout}
        </Empty>
      </Page>
    );
  }
  const take = (file: File | undefined): void => {
    setBad(file !== undefined && file.size > MOST_BYTES ? imports.tooLong : undefined);
    if (file !== undefined && file.size <= MOST_BYTES) {
      void file.text().then(setText);
    }
  };
  const wrong = bad ?? (all instanceof Error ? imports.noJson(all.message) : undefined);
  return (
    <Page>
      <PageHead title={imports.title} above={<Link to="/hooks">{words.hooks.title}</Link>} answer={imports.answer} />
      <div className="mb-4 grid grid-cols-[280px_minmax(0,1fr)] gap-4 max-lg:grid-cols-1">
        <Field label={imports.file} hint={imports.fileHint}>
          {(about) => <Input {...about} type="file" accept=".json,application/json" onChange={(event) => take(event.target.files?.[0])} />}
        </Field>
        <Field label={imports.text} error={wrong}>
          {(about) => <Area {...about} rows={6} className="font-mono" value={text} onChange={(event) => setText(event.target.value)} />}
        </Field>
      </div>
      {hooks !== undefined && agents.data !== undefined && Array.isArray(all) && all.length > 0 && <Trial key={text} all={all} hooks={hooks} names={agents.data} />}
    </Page>
  );
}

/** The hooks that a record could be: one's own tenant's, and everybody's. */
function useOwn(): readonly Hook[] | undefined {
  const { me } = useWire();
  const { data } = useHooks();
  return useMemo(() => data?.filter((hook) => hook.scope === "global" || hook.tenant_id === me.tenant_id), [data, me.tenant_id]);
}

function read(text: string): readonly unknown[] | Error {
  try {
    return text.trim() === "" ? [] : records(text);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** What would come of each record, and the way to let it come. */
function Trial({ all, hooks, names }: { all: readonly unknown[]; hooks: readonly Hook[]; names: Names }) {
  const words = useWords().rules.imports;
  const { connection } = useWire();
  const queries = useQueryClient();
  // What is shown is what was found at first: taking a record does not change its line.
  const [lines] = useState(() => compared(all, hooks, names));
  const [overwrites, setOverwrites] = useState(false);
  const [done, setDone] = useState<Done>(new Map());
  const faults = useQuery({ queryKey: ["import", lines], queryFn: () => Promise.all(lines.map((line) => unreadable(connection, line))), retry: false, staleTime: Infinity });
  const wanted = lines.filter(({ number, outcome }) => faults.data?.[number - 1] === undefined && done.get(number) !== null && (outcome.is === "added" || (outcome.is === "changed" && overwrites)));
  const act = useMutation({
    mutationFn: async () => {
      for (const line of wanted) {
        const error = await take(connection, line).then(
          () => null,
          (why: unknown) => (why instanceof Error ? why : new Error(String(why))),
        );
        setDone((so) => new Map(so).set(line.number, error));
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["hooks"] }),
  });
  const is = (line: Line): Line["outcome"]["is"] => (faults.data?.[line.number - 1] === undefined ? line.outcome.is : "refused");
  const count = (what: Line["outcome"]["is"]): number => lines.filter((line) => is(line) === what).length;
  const changed = count("changed");
  return (
    <>
      <p className="mb-2" role="status" data-testid="trial">
        {done.size === 0 ? words.found(count("added"), changed, count("same"), count("refused")) : words.taken([...done.values()].filter((error) => error === null).length)}
      </p>
      {faults.error !== null && <Problem error={faults.error} retry={() => void faults.refetch()} />}
      <Table label={words.records} head={[words.number, words.hook, words.event, words.comes]}>
        {lines.map((line) => (
          <Row key={line.number} name={line.name}>
            <Cell name={words.number}>{line.number}</Cell>
            <Cell name={words.hook}>
              <span className="font-semibold wrap-anywhere">{line.name || words.noName}</span>
            </Cell>
            <Cell name={words.event}>
              <code>{line.event}</code>
            </Cell>
            <Cell name={words.comes}>
              <Comes line={line} fault={faults.data?.[line.number - 1]} done={done.get(line.number)} />
            </Cell>
          </Row>
        ))}
      </Table>
      <div className="mt-4 flex flex-wrap items-center gap-4">
        {changed > 0 && <Tick label={words.overwrite(changed)} hint={words.overwriteHint} checked={overwrites} onChange={(event) => setOverwrites(event.target.checked)} />}
        <Button look="primary" disabled={wanted.length === 0 || act.isPending || faults.isPending} onClick={() => act.mutate()}>
          {words.act(wanted.length)}
        </Button>
      </div>
    </>
  );
}

async function take(connection: PintleClient, { outcome }: Line): Promise<unknown> {
  switch (outcome.is) {
    case "added":
      return connection.request("hooks.create", outcome.input);
    case "changed":
      return connection.request("hooks.update", { hookId: outcome.hook.id, updates: outcome.updates, ifVersion: outcome.hook.version });
    case "same":
    case "refused":
      return undefined;
  }
}

const SIGNS: Readonly<Record<Line["outcome"]["is"], SignKind>> = { added: "allow", same: "off", changed: "ask", refused: "block" };

/** What comes of a record, and why. */
function Comes({ line: { outcome }, fault, done }: { line: Line; fault: string | undefined; done: Error | null | undefined }) {
  const words = useWords().rules.imports;
  if (done !== undefined) {
    return done === null ? <Sign kind="allow" word={words.done} /> : <Said kind="error" word={words.outcomes.refused} why={done.message} />;
  }
  if (fault !== undefined) {
    return <Said kind="block" word={words.outcomes.refused} why={fault} />;
  }
  const why = outcome.is === "changed" ? outcome.what.join(", ") : outcome.is === "refused" ? words.refusals[outcome.refusal.why](outcome.refusal.text) : "";
  return <Said kind={SIGNS[outcome.is]} word={words.outcomes[outcome.is]} why={why} />;
}

function Said({ kind, word, why }: { kind: SignKind; word: string; why: string }) {
  return (
    <>
      <Sign kind={kind} word={word} /> {why !== "" && <span className="text-muted wrap-anywhere">{why}</span>}
    </>
  );
}
