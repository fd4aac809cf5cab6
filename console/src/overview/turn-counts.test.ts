import { expect, test } from "vitest";

import type { PintleClient } from "../wire/client.ts";
import type { Params } from "../wire/types.ts";
import { countText, countTurns } from "./turn-counts.ts";

type Asked = Params<"turns.list">;

/** A server that has so many turns in each page, by what they came to. */
function server(pages: Readonly<Record<string, readonly number[]>>): { readonly connection: Pick<PintleClient, "request">; readonly asked: Asked[] } {
  const asked: Asked[] = [];
  const request = (method: string, params: Asked): Promise<unknown> => {
    expect(method).toBe("turns.list");
    asked.push(params);
    const all = pages[params.decision ?? ""] ?? [];
    const page = Number(params.cursor ?? 0);
    return Promise.resolve({ turns: Array.from({ length: all[page] ?? 0 }, () => ({})), nextCursor: page + 1 < all.length ? String(page + 1) : "" });
  };
  return { connection: { request } as unknown as Pick<PintleClient, "request">, asked };
}

const SINCE = "2026-11-26T00:00:00Z";

test("a number counts the turns of the list behind it, also of short pages", async () => {
  const { connection, asked } = server({ blocked: [2, 0, 1], asked: [4] });
  const counts = await countTurns(connection, { since: SINCE, allTenants: true });
  expect(counts).toEqual({ asked: { turns: 4, isMore: false }, faulted: { turns: 0, isMore: false }, blocked: { turns: 3, isMore: false } });
  expect(asked.every(({ since, allTenants }) => since === SINCE && allTenants === true)).toBe(true);
});

test("of more than are counted it says so", async () => {
  const { connection, asked } = server({ blocked: [200, 200], faulted: [1, 0, 0, 0, 0, 0, 0] });
  const { blocked, faulted } = await countTurns(connection, { since: SINCE });
  expect([countText(blocked, "en"), countText(faulted, "en"), countText({ turns: 3, isMore: false }, "en")]).toEqual(["200+", "1+", "3"]);
  expect(asked.length).toBeLessThan(10);
});
