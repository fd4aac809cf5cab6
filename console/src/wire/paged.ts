import { type InfiniteData, keepPreviousData, type Query, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";

interface OnePage {
  /** Where the next page begins; empty at the end. */
  readonly nextCursor: string;
}

/** Rows that come page by page. */
export interface Paged<Row> {
  readonly rows: readonly Row[];
  readonly error: Error | null;
  /** Nothing is known yet. */
  readonly isPending: boolean;
  /** There are more than these. */
  readonly hasMore: boolean;
  /** Fetches the next page; absent while that cannot be done. */
  readonly more: (() => void) | undefined;
  /** Begins with the first page again. */
  readonly anew: () => Promise<unknown>;
}

const isPages = (data: unknown): data is InfiniteData<OnePage> => typeof data === "object" && data !== null && "pages" in data && "pageParams" in data;

/** Whether a list is too long to be fetched anew just because something changed: page by page, all of them one after the other. */
export const isLong = (query: Query): boolean => isPages(query.state.data) && query.state.data.pages.length > 1;

const first = <Data extends InfiniteData<OnePage>>(data: Data | undefined): Data | undefined =>
  data === undefined || data.pages.length < 2 ? data : { ...data, pages: data.pages.slice(0, 1), pageParams: data.pageParams.slice(0, 1) };

/** Rows by their pages. Whoever comes back, or wants to see what is new, begins with the first page. */
export function usePaged<Page extends OnePage, Row>(key: readonly unknown[], ask: (cursor: string | undefined) => Promise<Page>, rowsOf: (page: Page) => readonly Row[]): Paged<Row> {
  const queries = useQueryClient();
  const asked = JSON.stringify(key);
  const begin = useCallback(() => {
    queries.setQueryData<InfiniteData<Page>>(JSON.parse(asked) as unknown[], first);
  }, [queries, asked]);
  useMemo(begin, [begin]);
  const { data, error, isPending, isFetching, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: key,
    initialPageParam: "",
    queryFn: ({ pageParam }) => ask(pageParam === "" ? undefined : pageParam),
    getNextPageParam: ({ nextCursor }) => (nextCursor === "" ? undefined : nextCursor),
    refetchOnMount: "always",
    // What was compared once is not compared again with every page that comes.
    structuralSharing: false,
    placeholderData: keepPreviousData,
  });
  const rows = useMemo(() => data?.pages.flatMap(rowsOf) ?? [], [data, rowsOf]);
  const next = useCallback(() => void fetchNextPage({ cancelRefetch: false }), [fetchNextPage]);
  const anew = useCallback(() => {
    begin();
    return refetch();
  }, [begin, refetch]);
  // While pages are fetched anew, a wish for the next one would be lost, and nobody would wish again.
  return { rows, error, isPending, hasMore: hasNextPage, more: hasNextPage && !isFetching ? next : undefined, anew };
}
