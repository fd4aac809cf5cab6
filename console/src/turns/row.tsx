import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { useEverywhere } from "../ui/every-tenant.ts";
import { Name } from "../ui/name.tsx";
import { Sign } from "../ui/sign.tsx";
import { When } from "../ui/when.tsx";
import { took } from "../ui/took.ts";
import { useApprovals } from "../wire/queries.ts";
import type { TurnLine } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";
import { signWith } from "./approved.ts";
import { tookOf } from "./line.ts";
import { whyBlocked } from "./said.ts";

/** A turn in a list; `said` is what comes before the message in it. */
export function TurnRow({ turn, tenant, said }: { turn: TurnLine; tenant?: string | undefined; said?: ReactNode }) {
  const words = useWords().turns;
  const { kind, word } = signWith(turn, useApprovals(true, useEverywhere()).data ?? []);
  const ms = tookOf(turn);
  return (
    <Link
      data-row
      to="/turns/$id"
      params={{ id: turn.turnId }}
      className="grid grid-cols-[96px_112px_minmax(0,1fr)_minmax(0,200px)_72px] items-center gap-2 px-3 py-1.5 -outline-offset-2! hover:bg-tint max-sm:grid-cols-[minmax(0,1fr)_auto] max-sm:gap-y-0.5 max-sm:py-2"
    >
      <span className="text-muted max-sm:order-2">
        <When at={turn.startedAt} />
      </span>
      <span className="max-sm:order-1">
        <Sign kind={kind} word={words.states[word]} />
      </span>
      <span className="min-w-0 max-sm:order-3 max-sm:col-span-2">
        {said !== undefined && <span className="line-clamp-2">{said}</span>}
        <span className={said === undefined ? "block truncate" : "block truncate text-muted"}>
          {turn.prompt === null ? <span className="text-muted">{words.noPrompt}</span> : <Name of={turn.prompt} />}
          {said === undefined && turn.reason !== undefined && turn.blocked > 0 && <span className="text-muted"> · <Name of={whyBlocked(turn.reason)} /></span>}
        </span>
      </span>
      <span className="truncate text-muted max-sm:order-4 max-sm:col-span-2">
        <Name of={turn.agentId} />
        {turn.userId !== null && (
          <>
            {" · "}
            <Name of={turn.userId} />
          </>
        )}
        {" · "}
        {words.calls(turn.calls)}
        {tenant !== undefined && ` · ${tenant}`}
      </span>
      <span className="text-right text-muted max-sm:hidden">{ms === undefined ? "" : took(ms)}</span>
    </Link>
  );
}
