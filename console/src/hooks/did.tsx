import { When } from "../ui/when.tsx";
import { took } from "../ui/took.ts";
import type { HookCountsAt } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";

export const CELL = "px-3 py-1.5 align-top max-sm:inline-block max-sm:px-0 max-sm:py-0 max-sm:pr-3";

/** What a hook did lately: when it ran last, how much it blocked, how long it took. */
export function Did({ did }: { did: HookCountsAt | undefined }) {
  const words = useWords().hooks;
  const cell = `${CELL} max-sm:hidden`;
  return (
    <>
      <td className={cell}>{did === undefined || did.lastAt === null ? "–" : <When at={did.lastAt} />}</td>
      <td className={cell}>{did === undefined ? "–" : words.share(did.blocked, did.runs)}</td>
      <td className={cell}>{did === undefined || did.p95Ms === null ? "–" : took(did.p95Ms)}</td>
    </>
  );
}
