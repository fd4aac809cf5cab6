import { useWords } from "../words/use-words.ts";
import { Button } from "./button.tsx";
import type { Held } from "./held.ts";

/** The rows that wait while somebody reads a list; with `ordered`, a new order of those that are there waits, too. */
export function Newer({ list, ordered = false }: { list: Pick<Held<unknown>, "newer" | "show"> & Partial<Pick<Held<unknown>, "isMoved">>; ordered?: boolean }) {
  const { list: words, rules } = useWords();
  const waiting = rules.live.paused;
  const isMoved = ordered && list.isMoved === true;
  return (
    <>
      <span role="status" className="sr-only">
        {list.newer === 0 ? "" : waiting(list.newer)}
      </span>
      {(list.newer > 0 || isMoved) && (
        <div className="mb-2">
          <Button onClick={list.show}>{list.newer === 0 ? words.moved : words.newer(list.newer)}</Button>
        </div>
      )}
    </>
  );
}
