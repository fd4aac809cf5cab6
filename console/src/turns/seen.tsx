import type { ReactNode } from "react";

import { TextDiff } from "../ui/diff.tsx";
import { ExactBox } from "../ui/exact.tsx";
import { Problem } from "../ui/problem.tsx";
import { RequestError } from "../wire/client.ts";
import type { SeenCall, SeenMessage } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";
import { useSeen } from "./queries.ts";
import { linesOf, parted, textOf } from "./seen-text.ts";

/** What a model was sent in a round: what is new in it, what it knew already, and what hooks changed of it. */
export function Seen({ turnId, round }: { turnId: string; round: number }) {
  const words = useWords().turns.seen;
  const found = useSeen(turnId, round);
  if (found.data === undefined) {
    const isMissing = found.error instanceof RequestError && found.error.code === "NOT_FOUND";
    return (
      <Part title={words.title}>
        {found.error === null ? <p className="text-muted">{words.loading}</p> : isMissing ? <p className="text-muted">{words.notKept}</p> : <Problem error={found.error} retry={() => void found.refetch()} />}
      </Part>
    );
  }
  return <Found call={found.data} />;
}

function Found({ call }: { call: SeenCall }) {
  const words = useWords().turns.seen;
  const { before, after, changedBy, complete, notes } = call;
  const { known, fresh } = parted((after ?? before).messages);
  return (
    <>
      {changedBy.length > 0 && (
        <Part title={words.changed(changedBy.join(", "))}>
          {!complete && <p className="mb-1 text-muted">{words.incomplete}</p>}
          {after !== null && <TextDiff before={textOf(before)} after={textOf(after)} titles={[words.before, words.after]} label={words.changed(changedBy.join(", "))} />}
        </Part>
      )}
      <Part title={after === null ? words.title : words.titleAfter}>
        <p className="mb-1 text-muted">{words.counted(before.messages.length, fresh.length, (after ?? before).tools.length)}</p>
        {notes.map((note, at) => (
          <p key={at} className="text-muted">
            {note}
          </p>
        ))}
        <ol aria-label={words.fresh} className="flex flex-col gap-2" data-testid="seen">
          {fresh.map((message, at) => (
            <Message key={at} message={message} />
          ))}
        </ol>
        {known.length > 0 && (
          <details className="mt-2">
            <summary className="text-accent">{words.known(known.length)}</summary>
            <ol className="mt-2 flex flex-col gap-2">
              {known.map((message, at) => (
                <Message key={at} message={message} />
              ))}
            </ol>
          </details>
        )}
        {(after ?? before).tools.length > 0 && (
          <p className="mt-2 text-muted">
            {words.tools}: <code>{(after ?? before).tools.join(", ")}</code>
          </p>
        )}
      </Part>
    </>
  );
}

const Part = ({ title, children }: { title: string; children: ReactNode }) => (
  <section className="mt-3">
    <h3 className="mb-1 font-medium">{title}</h3>
    {children}
  </section>
);

function Message({ message }: { message: SeenMessage }) {
  const words = useWords().turns.seen;
  const { from, skill, hook, isNew, changed, bytes } = message;
  const source = words.sources[from as keyof typeof words.sources] ?? from;
  const name = [skill, hook].filter(Boolean).join("/");
  const head = name === "" ? source : `${source} ${name}`;
  return (
    <li className="rounded border border-line">
      <p className="flex flex-wrap gap-x-2 border-b border-line bg-raised px-2 text-small">
        <span className="font-medium">{head}</span>
        {changed === true && from !== "hook" && <span className="text-ask">{words.changedOne}</span>}
        {isNew && <span className="ml-auto text-accent">{words.isNew}</span>}
      </p>
      <ExactBox text={linesOf(message)} label={head} className="max-h-64 p-2" />
      {bytes !== undefined && <p className="px-2 pb-1 text-small text-muted">{words.cut(bytes)}</p>}
    </li>
  );
}
