import { When } from "../ui/when.tsx";
import { took } from "../ui/took.ts";
import type { HookCountsAt } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";

const ANY = "px-3 py-1.5 align-top max-sm:px-0 max-sm:py-0";
/** On a telephone the cells of a row stand one after another, below its name; numbers are left out. */
export const CELL = `${ANY} max-sm:inline-block max-sm:pr-3`;
export const FIRST_CELL = `${ANY} max-sm:block`;

/** What a hook did lately: when it ran last, how much it blocked, how long it took. */
export function Did({ did }: { did: HookCountsAt | undefined }) {
  const words = useWords().hooks;
  const cell = `${ANY} max-sm:hidden`;
  return (
    <>
      <td className={cell}>{did === undefined || did.lastAt === null ? "–" : <When at={did.lastAt} />}</td>
      <td className={cell}>{did === undefined ? "–" : words.share(did.blocked, did.runs)}</td>
      <td className={cell}>{did === undefined || did.p95Ms === null ? "–" : took(did.p95Ms)}</td>
    </>
  );
}
