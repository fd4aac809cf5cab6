import { useCallback, useEffect, useRef, useState } from "react";

import { hand, type KeptFile, REFERENCE } from "./media.ts";

/** A file beside a message that is being written. */
export interface AttachedFile {
  readonly key: number;
  readonly name: string;
  readonly bytes: number;
  /** Where it is kept; nothing while it is on its way. */
  readonly reference: string | undefined;
  readonly error: unknown;
}

export interface AttachedFiles {
  readonly all: readonly AttachedFile[];
  readonly add: (files: Iterable<File>) => void;
  /** Files that are kept already, of a message that is edited. */
  readonly put: (references: readonly string[]) => void;
  readonly remove: (key: number) => void;
  readonly clear: () => void;
}

/** The files beside a message: each is handed over at once, and goes with the message by its reference. `first` are kept already. */
export function useFiles(first: readonly string[] = []): AttachedFiles {
  const [all, setAll] = useState<readonly AttachedFile[]>(() => first.map((reference, at) => ({ key: -1 - at, name: "", bytes: 0, reference, error: undefined })));
  const next = useRef(0);
  const under = useRef(new Map<number, AbortController>());
  useEffect(() => {
    const running = under.current;
    return () => running.forEach((one) => one.abort());
  }, []);
  const change = useCallback((key: number, with_: Partial<AttachedFile>) => setAll((so) => so.map((one) => (one.key === key ? { ...one, ...with_ } : one))), []);
  const add = useCallback(
    (files: Iterable<File>) => {
      for (const file of files) {
        const key = (next.current += 1);
        const stop = new AbortController();
        under.current.set(key, stop);
        setAll((so) => [...so, { key, name: file.name, bytes: file.size, reference: undefined, error: undefined }]);
        hand(file, stop.signal)
          .then(
            ({ id, bytes }: KeptFile) => change(key, { reference: REFERENCE + id, bytes }),
            (error: unknown) => change(key, { error }),
          )
          .finally(() => under.current.delete(key));
      }
    },
    [change],
  );
  const put = useCallback((references: readonly string[]) => {
    setAll(
      references.map((reference) => {
        const key = (next.current += 1);
        return { key, name: "", bytes: 0, reference, error: undefined };
      }),
    );
  }, []);
  const remove = useCallback((key: number) => {
    under.current.get(key)?.abort();
    setAll((so) => so.filter((one) => one.key !== key));
  }, []);
  const clear = useCallback(() => setAll([]), []);
  return { all, add, put, remove, clear };
}
