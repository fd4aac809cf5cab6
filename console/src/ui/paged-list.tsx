import { useVirtualizer, useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from "react";

import type { Paged } from "../wire/paged.ts";
import { useWords } from "../words/use-words.ts";
import { Button } from "./button.tsx";
import { clsx } from "./clsx.ts";
import { NARROW } from "./narrow.ts";
import { Newer } from "./newer.tsx";
import { Card } from "./page.tsx";
import { Problem } from "./problem.tsx";

/** How high the rows of a list are, in pixels: they are never measured. */
export interface RowHeight {
  readonly wide: number;
  /** On a telephone. */
  readonly narrow: number;
}

const isNarrow = (): boolean => matchMedia(NARROW).matches;
const narrowed = (changed: () => void): (() => void) => {
  const media = matchMedia(NARROW);
  media.addEventListener("change", changed);
  return () => media.removeEventListener("change", changed);
};

/** How near to the end the next page is fetched, in rows: about what one sees at once. */
const NEAR = 24;
/** Rows beyond those in sight, so that `j` finds the next one. */
const BEYOND = 8;

interface About<Row> {
  readonly label: string;
  readonly list: Paged<Row>;
  /** How many rows are newer than these. They wait until somebody wants to see them. */
  readonly newer: number;
  readonly height: RowHeight;
  readonly idOf: (row: Row) => string;
  /** What stands where there is nothing. */
  readonly empty: ReactNode;
  readonly children: (row: Row) => ReactNode;
}

/** A list of any length: the next page comes by itself, and only rows in sight are elements. */
export function PagedList<Row>({ label, list, newer, height, idOf, empty, children }: About<Row>) {
  const words = useWords().list;
  const { rows, error, isPending, hasMore, more, anew } = list;
  const [times, setTimes] = useState(0);
  return (
    <>
      <Newer
        list={{
          newer,
          show: () => {
            setTimes((so) => so + 1);
            void anew();
          },
        }}
      />
      {error !== null && <Problem error={error} retry={() => void anew()} />}
      {isPending && error === null && <p className="text-muted">{words.loading}</p>}
      {!isPending && rows.length === 0 && !hasMore && empty}
      {rows.length > 0 && (
        // Whoever wants to see what is new sees it: at the beginning.
        <Rows key={times} label={label} rows={rows} hasMore={hasMore} more={error === null ? more : undefined} height={height} idOf={idOf}>
          {children}
        </Rows>
      )}
      {hasMore && (
        <div className="mt-2">
          <Button disabled={more === undefined} onClick={more}>
            {more === undefined ? words.loading : words.more}
          </Button>
        </div>
      )}
    </>
  );
}

interface Shown<Row> extends Pick<About<Row>, "label" | "height" | "idOf" | "children"> {
  readonly rows: readonly Row[];
  readonly hasMore: boolean;
  readonly more: (() => void) | undefined;
}

/** How far below the beginning of the page something begins, in pixels, also once what stands above it takes another height. */
function useTop(place: RefObject<HTMLElement | null>, isWanted: boolean): number {
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    if (!isWanted) {
      return;
    }
    const look = (): void => setTop((place.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
    look();
    const observer = new ResizeObserver(look);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, [place, isWanted]);
  return top;
}

function Rows<Row>({ label, rows, hasMore, more, height, idOf, children }: Shown<Row>) {
  const place = useRef<HTMLDivElement>(null);
  const narrow = useSyncExternalStore(narrowed, isNarrow);
  const high = narrow ? height.narrow : height.wide;
  const about = {
    count: rows.length,
    estimateSize: () => high,
    overscan: BEYOND,
    getItemKey: (at: number) => {
      const row = rows[at];
      return row === undefined ? at : idOf(row);
    },
  };
  // On a telephone the list scrolls with its page: two bars beside each other are one too many for a finger.
  const top = useTop(place, narrow);
  const ofPlace = useVirtualizer({ ...about, getScrollElement: () => place.current, enabled: !narrow });
  const ofWindow = useWindowVirtualizer({ ...about, scrollMargin: top, enabled: narrow });
  const virtual = narrow ? ofWindow : ofPlace;
  useEffect(() => virtual.measure(), [virtual, high]);
  const isNear = (virtual.range?.endIndex ?? 0) >= rows.length - NEAR;
  useEffect(() => {
    if (isNear) {
      more?.();
    }
  }, [isNear, more]);
  return (
    <Card>
      <div ref={place} tabIndex={0} role="list" aria-label={label} className="max-h-[calc(100dvh-240px)] overflow-y-auto max-sm:max-h-none max-sm:overflow-visible">
        <div role="none" className="relative w-full" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, start, key }) => {
            const row = rows[index];
            return row === undefined ? null : (
              <div
                key={key}
                role="listitem"
                aria-posinset={index + 1}
                aria-setsize={hasMore ? -1 : rows.length}
                className={clsx("absolute inset-x-0 top-0 grid border-line", (hasMore || index < rows.length - 1) && "border-b")}
                style={{ transform: `translateY(${start - (narrow ? top : 0)}px)`, height: high }}
              >
                {children(row)}
              </div>
            );
          })}
        </div>
      </div>
    </Card>
  );
}
