import { useMemo } from "react";

import { useTurn } from "../turns/queries.ts";
import { TurnRow } from "../turns/row.tsx";
import { noteOfPerson, whyBlocked } from "../turns/said.ts";
import { happened, tree } from "../turns/view.ts";
import { Name } from "../ui/name.tsx";
import { SaidText } from "../ui/said-text.tsx";
import type { TurnLine } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";

/** A turn in which something was blocked: what that was, which hook blocked it, and why. */
export function BlockedRow({ turn, tenant }: { turn: TurnLine; tenant: string | undefined }) {
  const { turns: words, colon } = useWords();
  const family = useTurn(turn.turnId).data;
  const what = useMemo(() => (family === undefined ? undefined : happened(family, tree(family))), [family]);
  if (what?.kind !== "blocked") {
    return <TurnRow turn={turn} tenant={tenant} />;
  }
  // What a person refused says so.
  const note = what.hook === "" ? noteOfPerson(what.why) : undefined;
  // How a hook failed is said as in the list of turns, where there is one such reason; the page of the turn has all of it.
  const why = note ?? whyBlocked(what.isFault === true && what.more === 0 && turn.reason !== undefined ? turn.reason : what.why, what.hook);
  const said = (
    <>
      <code className="font-semibold"><Name of={what.what} /></code> · <span className="font-medium"><Name of={what.hook || (note === undefined ? words.somebody : words.person)} /></span>
      {why !== "" && colon}
      <SaidText text={why} />
    </>
  );
  return <TurnRow turn={turn} tenant={tenant} said={said} />;
}
