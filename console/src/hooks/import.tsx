import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { causeOf } from "../advice/advice.ts";
import { AdviceNote } from "../advice/advice-note.tsx";
import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Area, Check as Tick, Field, Input } from "../ui/field.tsx";
import { Name } from "../ui/name.tsx";
import { Empty, Page, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { Sign, type SignKind } from "../ui/sign.tsx";
import { Cell, Row, Table } from "../ui/table.tsx";
import { useAgents } from "../wire/queries.ts";
import type { HookInput, ImportedHook } from "../wire/types.ts";
import { useDraft } from "../wire/use-draft.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords, type Words } from "../words/use-words.ts";
import { differenceOf, type Line, linesOf, type Names, plain, records } from "./exchange.ts";

/** Longer files are for the command line: a message to the server has 512 KiB at most. */
const MOST_BYTES = 400 * 1024;

/** Takes hooks from a file: first it says what would come of each record. */
export function ImportPage() {
  const words = useWords();
  const { imports } = words.rules;
  const may = useMay("admin");
  const agents = useAgents();
  // In memory only: a file may hold what is secret.
  const { typed: text, set: setText, drop } = useDraft("hooks.import", "");
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
  const wrong = bad ?? (isTooLong(text) ? imports.tooLong : undefined) ?? (all instanceof Error ? imports.noJson(all.message) : undefined);
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
      {agents.data !== undefined && Array.isArray(all) && all.length > 0 && <Trial key={text} all={all} names={agents.data} onTaken={drop} />}
    </Page>
  );
}

/** Whether a text is longer than what is taken; no text has fewer bytes than characters. */
function isTooLong(text: string): boolean {
  return text.length > MOST_BYTES || new Blob([text]).size > MOST_BYTES;
}

function read(text: string): readonly unknown[] | Error {
  try {
    return text.trim() === "" ? [] : records(text);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

type Is = "added" | "same" | "changed" | "refused";

/** What would come of a record, and why. */
interface Fate {
  readonly line: Line;
  readonly is: Is;
  readonly why: string;
}

/** A difference in words: which is which. */
function differenceIn(said: string, { rules: { imports: words } }: Words): string {
  const parts = differenceOf(said);
  const side = (value: string): string => (value === "absent" ? words.absent : value);
  return parts === undefined ? said : words.differs(parts.path, side(parts.here), side(parts.file));
}

/** Whether a record lacks what says where it acts and what answers. */
const lacksPlace = ({ of }: Line): boolean => of.is === "refused" && of.refusal.why === "missing" && /\b(event|handler_type|scope)\b/.test(of.refusal.text);

/** A refusal in words: a known cause with what to do about it. */
function refusalIn(said: string, { advice }: Words): string {
  const cause = causeOf(said);
  return cause === undefined ? plain(said) : `${advice[cause].cause} ${advice[cause].fix}`;
}

const ARE: Readonly<Record<ImportedHook["outcome"], Is>> = { created: "added", same: "same", updated: "changed", refused: "refused" };
const inputOf = ({ of }: Line): readonly HookInput[] => (of.is === "record" ? [of.input] : []);

/** What would come of each record, as the server says, and the way to let all of them come. */
function Trial({ all, names, onTaken }: { all: readonly unknown[]; names: Names; onTaken: () => void }) {
  const texts = useWords();
  const words = texts.rules.imports;
  const { connection } = useWire();
  const queries = useQueryClient();
  const lines = useMemo(() => linesOf(all, names), [all, names]);
  const [overwrites, setOverwrites] = useState(false);
  const trial = useQuery({
    queryKey: ["import", lines],
    queryFn: async () => {
      const hooks = lines.flatMap(inputOf);
      return hooks.length === 0 ? [] : (await connection.request("hooks.import", { hooks, overwrite: true, dryRun: true })).hooks;
    },
    retry: false,
    staleTime: Infinity,
  });
  const fates = useMemo((): readonly Fate[] | undefined => {
    const said = trial.data?.values();
    return said && lines.map((line) => {
      if (line.of.is === "refused") {
        return { line, is: "refused", why: words.refusals[line.of.refusal.why](line.of.refusal.text) };
      }
      const { outcome = "refused", differs = [], error = "", warnings = [] } = said.next().value ?? {};
      return { line, is: ARE[outcome], why: [refusalIn(error, texts), ...differs.map((text) => differenceIn(text, texts)), ...warnings].filter((text) => text !== "").join("; ") };
    });
  }, [lines, trial.data, texts, words.refusals]);
  const wanted = (fates ?? []).filter(({ is }) => is === "added" || (is === "changed" && overwrites));
  const over = wanted.filter(({ is }) => is === "changed");
  const [asks, setAsks] = useState(false);
  const act = useMutation({
    mutationFn: () => connection.request("hooks.import", { hooks: wanted.flatMap(({ line }) => inputOf(line)), overwrite: overwrites }),
    onSuccess: onTaken,
    onSettled: () => queries.invalidateQueries({ queryKey: ["hooks"] }),
  });
  const taken = act.isSuccess ? new Set(wanted.map(({ line }) => line.number)) : undefined;
  const count = (what: Is): number => (fates ?? []).filter(({ is }) => is === what).length;
  const changed = count("changed");
  if (fates === undefined) {
    return trial.error === null ? <p className="text-muted">{words.asking}</p> : <Problem error={trial.error} retry={() => void trial.refetch()} />;
  }
  return (
    <>
      <p className="mb-2" role="status" data-testid="trial">
        {taken === undefined ? words.found(count("added"), changed, count("same"), count("refused")) : words.taken(taken.size)}
      </p>
      <Table label={words.records} head={[words.number, words.hook, words.event, words.comes]}>
        {fates.map(({ line, is, why }) => (
          <Row key={line.number} name={line.name}>
            <Cell name={words.number}>{line.number}</Cell>
            <Cell name={words.hook} className="md:min-w-40">
              <span className="font-semibold wrap-anywhere"><Name of={line.name || words.noName} /></span>
            </Cell>
            <Cell name={words.event}>
              <code className="whitespace-nowrap">{line.event}</code>
            </Cell>
            <Cell name={words.comes}>
              {taken?.has(line.number) === true ? (
                <Sign kind="allow" word={words.done} />
              ) : (
                <>
                  <Sign kind={SIGNS[is]} word={words.outcomes[is]} /> {why !== "" && <span className="text-muted wrap-anywhere">{why}</span>}
                </>
              )}
            </Cell>
          </Row>
        ))}
      </Table>
      <AdviceNote cause={lines.some(lacksPlace) ? "required" : undefined} />
      {act.error !== null && (
        <>
          <p className="mt-4 font-medium">{words.nothingWritten}</p>
          <Problem error={act.error} />
        </>
      )}
      {taken === undefined && (
        <div className="mt-4 flex flex-wrap items-center gap-4">
          {changed > 0 && <Tick label={words.overwrite(changed)} hint={words.overwriteHint} checked={overwrites} onChange={(event) => setOverwrites(event.target.checked)} />}
          <Button look="primary" disabled={wanted.length === 0 || act.isPending} onClick={() => (over.length > 0 ? setAsks(true) : act.mutate())}>
            {words.act(wanted.length)}
          </Button>
        </div>
      )}
      {/* What is there acts otherwise from then on: that is asked, as wherever something dangerous is done. */}
      <Confirm
        open={asks}
        onClose={() => setAsks(false)}
        title={words.overTitle(over.length)}
        about={words.overAbout}
        action={words.act(wanted.length)}
        act={() => {
          setAsks(false);
          return act.mutateAsync().catch(() => undefined);
        }}
      >
        <ul className="mb-2 max-h-60 overflow-y-auto" tabIndex={0} aria-label={words.hook}>
          {over.map(({ line, why }) => (
            <li key={line.number} className="mb-1">
              <span className="font-semibold wrap-anywhere"><Name of={line.name || words.noName} /></span> <code>{line.event}</code>
              {why !== "" && <span className="block text-muted wrap-anywhere">{why}</span>}
            </li>
          ))}
        </ul>
      </Confirm>
    </>
  );
}

const SIGNS: Readonly<Record<Is, SignKind>> = { added: "allow", same: "off", changed: "ask", refused: "block" };
