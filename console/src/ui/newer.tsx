import { useWords } from "../words/use-words.ts";
import { Button } from "./button.tsx";
import type { Held } from "./held.ts";

/** The rows that wait while somebody reads a list. */
export function Newer({ list }: { list: Pick<Held<unknown>, "newer" | "show"> }) {
  const words = useWords().list;
  return list.newer === 0 ? null : (
    <div className="mb-2">
      <Button onClick={list.show}>{words.newer(list.newer)}</Button>
    </div>
  );
}
