import type { PintleClient } from "../wire/client.ts";
import type { Params, TurnOutcome } from "../wire/types.ts";

/** How many turns there are of which a number tells; with `isMore` at least so many. */
export interface TurnCount {
  readonly turns: number;
  readonly isMore: boolean;
}

/** What turns are counted by. */
export type CountedOutcome = Exclude<TurnOutcome, "allowed">;

export type TurnCounts = Readonly<Record<CountedOutcome, TurnCount>>;

type Query = Pick<Params<"turns.list">, "since" | "allTenants">;

/** Beyond this a number says that there are more. */
const MOST = 200;
/** Most pages that are read for one number: one may be short, and still another one after it. */
const MOST_PAGES = 5;

async function countOf(connection: Pick<PintleClient, "request">, query: Query, decision: TurnOutcome): Promise<TurnCount> {
  let turns = 0;
  let cursor = "";
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const found = await connection.request("turns.list", { ...query, decision, limit: MOST, ...(cursor === "" ? {} : { cursor }) });
    turns += found.turns.length;
    cursor = found.nextCursor;
    if (cursor === "" || turns >= MOST) {
      break;
    }
  }
  return { turns, isMore: cursor !== "" };
}

/** How many turns came to what. The same question is asked as the list of turns asks, so that a number and the list behind it cannot differ. */
export async function countTurns(connection: Pick<PintleClient, "request">, query: Query): Promise<TurnCounts> {
  const of = (decision: CountedOutcome): Promise<TurnCount> => countOf(connection, query, decision);
  const [asked, faulted, blocked] = await Promise.all([of("asked"), of("faulted"), of("blocked")]);
  return { asked, faulted, blocked };
}

/** A count as it is read. Pure. */
export const countText = ({ turns, isMore }: TurnCount, language: string): string => `${turns.toLocaleString(language)}${isMore ? "+" : ""}`;
