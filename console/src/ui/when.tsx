import { useSyncExternalStore } from "react";

import { useLanguage } from "../words/use-words.ts";

const STEPS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

interface Formats {
  readonly relative: Intl.RelativeTimeFormat;
  readonly exact: Intl.DateTimeFormat;
}

const formats = new Map<string, Formats>();

/** What writes moments in a language. Making it takes longer than writing a hundred of them. */
function formatsOf(language: string): Formats {
  const made = formats.get(language) ?? {
    relative: new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" }),
    exact: new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "long" }),
  };
  formats.set(language, made);
  return made;
}

/** How long ago, or how long until. Pure. */
export function relative(at: number, now: number, language: string): string {
  const seconds = Math.round((at - now) / 1000);
  const isAhead = seconds > 0;
  // What ends in a day ends in 24 hours, whenever one looks: a day ahead is one from the second on.
  const [unit, size] = STEPS.find(([name, step]) => Math.abs(seconds) >= (isAhead && name === "day" ? 2 * step : step)) ?? ["second", 1];
  // An age is what has passed of it; what is ahead is as long as it was said to be, also a moment later.
  const count = isAhead ? Math.round(seconds / size) : Math.trunc(seconds / size);
  // Between a number and a Chinese word stands a blank, as everywhere on the pages.
  return formatsOf(language).relative.format(count, unit).replace(/(?<=\d)(?=\p{Script=Han})/u, " ");
}

const MOMENT = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** A text of the server with its moments as people read them. Pure. */
export const withMoments = (text: string, language: string): string => text.replaceAll(MOMENT, (at) => formatsOf(language).exact.format(Date.parse(at)));

const TICK_MS = 10_000;
/** Of what was a moment ago people see the seconds go by. */
const RECENT_MS = 60_000;
const RECENT_TICK_MS = 1_000;
let now = Date.now();
const every =
  (pause: number) =>
  (changed: () => void): (() => void) => {
    now = Date.now();
    const timer = setInterval(() => {
      now = Date.now();
      changed();
    }, pause);
    return () => clearInterval(timer);
  };
const seldom = every(TICK_MS);
const often = every(RECENT_TICK_MS);

/** The time, every ten seconds; beside a moment that is not a minute away, every second. */
export function useNow(beside?: number): number {
  return useSyncExternalStore(beside !== undefined && Math.abs(beside - Date.now()) < RECENT_MS ? often : seldom, () => now);
}

/** Stands in a sentence for a moment. */
const HERE = "\u0000";

/** A moment within words: each language has its own place for it. */
export function Timed({ says, at }: { says: (when: string) => string; at: string }) {
  const [before, after] = says(HERE).split(HERE);
  return (
    <>
      {before}
      <When at={at} />
      {after}
    </>
  );
}

/** A moment: relative, and exact where one points at it. */
export function When({ at }: { at: string }) {
  const language = useLanguage();
  const moment = Date.parse(at);
  const current = Math.max(useNow(moment), Math.min(moment, Date.now()));
  const exact = formatsOf(language).exact.format(moment);
  return (
    <time dateTime={at} title={exact}>
      {relative(moment, current, language)}
    </time>
  );
}
