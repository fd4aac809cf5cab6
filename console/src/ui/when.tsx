import { useSyncExternalStore } from "react";

import { useLanguage } from "../words/use-words.ts";

const STEPS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

/** How long ago, or how long until. Pure. */
export function relative(at: number, now: number, language: string): string {
  const seconds = Math.round((at - now) / 1000);
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
  const [unit, size] = STEPS.find(([, step]) => Math.abs(seconds) >= step) ?? ["second", 1];
  return format.format(Math.trunc(seconds / size), unit);
}

const TICK_MS = 10_000;
let now = Date.now();
const tick = (changed: () => void): (() => void) => {
  now = Date.now();
  const timer = setInterval(() => {
    now = Date.now();
    changed();
  }, TICK_MS);
  return () => clearInterval(timer);
};

/** The time, every ten seconds. */
export function useNow(): number {
  return useSyncExternalStore(tick, () => now);
}

/** A moment: relative, and exact where one points at it. */
export function When({ at }: { at: string }) {
  const language = useLanguage();
  const moment = Date.parse(at);
  const current = Math.max(useNow(), Math.min(moment, Date.now()));
  const exact = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "long" }).format(moment);
  return (
    <time dateTime={at} title={exact}>
      {relative(moment, current, language)}
    </time>
  );
}
