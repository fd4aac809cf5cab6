import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type KeyboardEvent, memo, useEffect, useRef } from "react";

import { clsx } from "../ui/clsx.ts";
import { Name } from "../ui/name.tsx";
import { SaidText } from "../ui/said-text.tsx";
import { Sign } from "../ui/sign.tsx";
import { took } from "../ui/took.ts";
import { useWords } from "../words/use-words.ts";
import { nameOf, signWord } from "./said.ts";
import type { Shown } from "./view.ts";

/** How high a row is, in pixels: with a finger it is aimed at, too. */
const ROW_PX = 28;
const TOUCH_ROW_PX = 44;
/** Where there is no room beside the tree, so many rows scroll with the page; of more, what one of them tells would be far below. */
const FEW = 20;
const isSmall = (): boolean => matchMedia("(max-width: 639px)").matches;

/** The parts of a turn as a tree with bars. The row that is chosen has the keys. */
export function Tree({ rows, length, chosen, choose, turn, label }: { rows: readonly Shown[]; length: number; chosen: string | undefined; choose: (id: string) => void; turn: (id: string) => void; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const height = isSmall() ? TOUCH_ROW_PX : ROW_PX;
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => place.current, estimateSize: () => height, overscan: 10 });
  const at = rows.findIndex(({ row }) => row.id === chosen);
  const isFirst = useRef(true);
  useEffect(() => {
    if (at !== -1) {
      virtual.scrollToIndex(at, { align: isFirst.current ? "center" : "auto" });
      isFirst.current = false;
    }
  }, [virtual, at]);
  const go = (to: number): void => {
    const next = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (next !== undefined) {
      choose(next.row.id);
    }
  };
  const keys = (event: KeyboardEvent): void => {
    const now = rows[at];
    const steps: Readonly<Record<string, () => void>> = {
      ArrowDown: () => go(at + 1),
      j: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      k: () => go(at - 1),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      Enter: () => now !== undefined && now.row.children.length > 0 && turn(now.row.id),
      ArrowRight: () => {
        if (now !== undefined && now.row.children.length > 0) {
          if (now.isOpen) {
            go(at + 1);
          } else {
            turn(now.row.id);
          }
        }
      },
      ArrowLeft: () => {
        if (now !== undefined && now.isOpen && now.row.children.length > 0) {
          turn(now.row.id);
        } else if (now !== undefined) {
          go(rows.slice(0, at).findLastIndex(({ level }) => level < now.level));
        }
      },
    };
    const step = event.ctrlKey || event.metaKey || event.altKey ? undefined : steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      step();
    }
  };
  const seen = virtual.getVirtualItems();
  const isSeen = seen.some(({ index }) => index === at);
  return (
    <div
      ref={place}
      role="tree"
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={isSeen ? `row-${at}` : undefined}
      onKeyDown={keys}
      className={clsx("max-h-[calc(100dvh-200px)] min-h-40 overflow-x-hidden overflow-y-auto -outline-offset-2!", rows.length > FEW ? "max-lg:max-h-[60dvh]" : "max-lg:max-h-none")}
    >
      <div role="none" className="relative w-full" style={{ height: virtual.getTotalSize() }}>
        {seen.map(({ index, start }) => {
          const one = rows[index];
          return one === undefined ? null : (
            <TreeRow key={one.row.id} one={one} at={index} start={start} height={height} length={length} isChosen={index === at} choose={choose} turn={turn} />
          );
        })}
      </div>
    </div>
  );
}

const BARS = { allow: "bg-accent", block: "bg-block", ask: "bg-ask", error: "bg-fault", timeout: "bg-fault", off: "bg-edge", tripped: "bg-block" } as const;

interface RowAbout {
  readonly one: Shown;
  readonly at: number;
  readonly start: number;
  readonly height: number;
  readonly length: number;
  readonly isChosen: boolean;
  readonly choose: (id: string) => void;
  readonly turn: (id: string) => void;
}

const TreeRow = memo(function TreeRow({ one, at, start, height, length, isChosen, choose, turn }: RowAbout) {
  const words = useWords();
  const { row, level, isOpen } = one;
  const has = row.children.length > 0;
  const { name, about, isCode } = nameOf(row, words.turns);
  const left = Math.min(99.5, (row.start / length) * 100);
  const isSigned = row.sign !== undefined && row.sign !== "off" && row.of.kind !== "round" && (row.sign !== "allow" || row.of.kind === "hook");
  const quiet = row.of.kind === "skipped" || row.sign === "off";
  return (
    <div
      id={`row-${at}`}
      role="treeitem"
      aria-level={level}
      aria-selected={isChosen}
      aria-expanded={has ? isOpen : undefined}
      data-row-id={row.id}
      className={clsx("absolute inset-x-0 top-0 grid cursor-pointer grid-cols-[minmax(0,1fr)_auto_18%_56px] items-center gap-2 max-sm:grid-cols-[minmax(0,1fr)_auto] border-b border-line px-2", isChosen ? "bg-tint shadow-[inset_3px_0_0_var(--accent)]" : "hover:bg-raised")}
      style={{ transform: `translateY(${start}px)`, height }}
      onClick={() => (isChosen && has ? turn(row.id) : choose(row.id))}
    >
      <span className="flex min-w-0 items-center gap-1 pl-[calc(var(--level)*14px)] max-sm:pl-[calc(var(--level)*8px)]" style={{ "--level": level - 1 } as CSSProperties}>
        <span
          aria-hidden="true"
          className="w-6 shrink-0 text-center leading-6 text-muted"
          onClick={(event) => {
            event.stopPropagation();
            if (has) {
              turn(row.id);
            } else {
              choose(row.id);
            }
          }}
        >
          {has ? (isOpen ? "▾" : "▸") : ""}
        </span>
        {/* With a finger there is little room beside each other, and some below. */}
        <span className="flex min-w-0 items-center gap-1 max-sm:flex-col max-sm:items-start max-sm:gap-0 max-sm:leading-5">
          <span className={clsx("shrink-0 truncate max-sm:max-w-full", about === "" ? "max-w-full" : "max-w-[70%]", isCode && "font-mono", quiet && "text-muted", (row.of.kind === "round" || row.of.kind === "call" || row.of.kind === "turn") && "font-semibold")}><Name of={name} /></span>
          {about !== "" && <span className="max-w-full truncate text-muted max-sm:text-small">{isCode ? <Name of={about} /> : <SaidText text={about} />}</span>}
        </span>
      </span>
      <span className="contents max-sm:flex max-sm:flex-col max-sm:items-end">
        <span className="order-1 min-w-0 truncate">{isSigned && <Sign kind={row.sign ?? "off"} word={signWord(row, words)} />}</span>
        <span className="order-3 text-right text-small text-muted">{quiet || row.took === 0 ? "" : took(row.took)}</span>
      </span>
      <span aria-hidden="true" className="relative order-2 h-2 max-sm:hidden">
        {!quiet && <span className={clsx("absolute h-2 min-w-[2px] rounded-sm", row.of.kind === "round" ? "bg-edge opacity-50" : BARS[row.sign ?? "allow"])} style={{ left: `${left}%`, width: `${Math.min(100 - left, (row.took / length) * 100)}%` }} />}
      </span>
    </div>
  );
});
