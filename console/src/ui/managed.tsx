import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { useWords } from "../words/use-words.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { PageHead } from "./page.tsx";
import { Problem } from "./problem.tsx";

/** What the server says, or why it does not. */
interface Found<One> {
  readonly data: readonly One[] | undefined;
  readonly error: Error | null;
  readonly refetch: () => Promise<unknown>;
}

/** How a new one is made. */
interface Making {
  readonly action: string;
  readonly about: string;
  readonly form: (onClose: () => void) => ReactNode;
}

/** A list that somebody keeps in order: what it is, a way to make a new one, and its rows. */
export function Managed<One>({ title, answer, found, making, empty, children }: { title: string; answer: string; found: Found<One>; making: Making | undefined; empty?: ReactNode; children: (rows: readonly One[]) => ReactNode }) {
  const [makes, setMakes] = useState(false);
  const close = (): void => setMakes(false);
  return (
    <>
      <PageHead
        title={title}
        answer={answer}
        actions={
          making !== undefined && (
            <Button look="primary" onClick={() => setMakes(true)}>
              {making.action}
            </Button>
          )
        }
      />
      {found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.data?.length === 0 && empty}
      {found.data !== undefined && found.data.length > 0 && children(found.data)}
      {making !== undefined && (
        <Dialog open={makes} onClose={close} title={making.action} about={making.about}>
          {making.form(close)}
        </Dialog>
      )}
    </>
  );
}

/** The fields of a dialog that makes something, and what is done with them. It stays open when that fails. */
export function MakeForm({ action, ready, make, onClose, labels, children }: { action: string; ready: boolean; make: () => Promise<unknown>; onClose: () => void; labels: Readonly<Record<string, string>>; children: ReactNode }) {
  const words = useWords();
  const made = useMutation({ mutationFn: make, onSuccess: onClose });
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        made.mutate();
      }}
    >
      {children}
      {made.error !== null && <Problem error={made.error} labels={labels} />}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>{words.cancel}</Button>
        <Button look="primary" type="submit" disabled={made.isPending || !ready}>
          {action}
        </Button>
      </div>
    </form>
  );
}

/** A word that marks the row that is one's own. */
export function Own({ children }: { children: ReactNode }) {
  return <span className="ml-2 rounded bg-tint px-1.5 text-small text-accent">{children}</span>;
}
