import type { DecisionBucket } from "../wire/types.ts";

/** From below to above: what is most stands lowest. */
export const KINDS = ["allowed", "asked", "faults", "blocked"] as const;
export type Kind = (typeof KINDS)[number];

export interface Bar {
  readonly at: string;
  readonly parts: readonly { readonly kind: Kind; readonly from: number; readonly count: number }[];
}

/** Counts upon each other, and how high the highest is. Pure. */
export function stacked(buckets: readonly DecisionBucket[]): { readonly bars: readonly Bar[]; readonly top: number } {
  const bars = buckets.map((bucket): Bar => {
    let from = 0;
    const parts = KINDS.filter((kind) => bucket[kind] > 0).map((kind) => {
      const part = { kind, from, count: bucket[kind] };
      from += part.count;
      return part;
    });
    return { at: bucket.at, parts };
  });
  const heights = bars.map(({ parts }) => parts.reduce((sum, { count }) => sum + count, 0));
  return { bars, top: Math.max(1, ...heights) };
}
