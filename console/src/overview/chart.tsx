import { Link, useNavigate } from "@tanstack/react-router";

import { ofTenants, useEverywhere } from "../ui/every-tenant.ts";
import type { Span } from "../ui/span.tsx";
import type { DecisionsOverTime } from "../wire/types.ts";
import { useLanguage, useWords } from "../words/use-words.ts";
import { KINDS, stacked } from "./stack.ts";
import { countText, type TurnCounts } from "./turn-counts.ts";

const WIDTH = 720;
const HEIGHT = 120;
const GAP = 2;
const FILLS = { allowed: "fill-accent", asked: "fill-ask", faults: "fill-fault", blocked: "fill-block" } as const;

/** What the turns are looked for by in which hooks decided so. */
const OUTCOMES = { asked: "asked", faults: "faulted", blocked: "blocked" } as const;

/** What hooks decided over time, and in how many turns, once that is known. Each bar leads to the turns of its time; the table below it is for those who do not see bars. */
export function DecisionChart({ decisions, counts, span }: { decisions: DecisionsOverTime; counts: TurnCounts | undefined; span: Span }) {
  const { overview: words, colon } = useWords();
  const language = useLanguage();
  const navigate = useNavigate();
  const everywhere = useEverywhere();
  const { bars, top } = stacked(decisions.buckets);
  const step = WIDTH / Math.max(1, bars.length);
  const { bucketMs } = decisions;
  const day = { month: "short", day: "numeric" } as const;
  const time = { hour: "2-digit", minute: "2-digit" } as const;
  // An hour ago was today for whoever looks at it, a day ago was not.
  const clock = new Intl.DateTimeFormat(language, span === "hour" ? time : { ...day, ...time });
  const go = (at: string): void => {
    void navigate({ to: "/turns", search: { since: at, until: new Date(Date.parse(at) + bucketMs).toISOString(), ...ofTenants(everywhere) } as never });
  };
  const [first] = bars;
  return (
    <div>
      <ul className="mb-2 flex flex-wrap gap-x-4 text-small text-muted">
        {KINDS.map((kind) => (
          <li key={kind} className="flex items-center gap-1">
            <svg width="10" height="10" aria-hidden="true">
              <rect width="10" height="10" rx="2" className={FILLS[kind]} />
            </svg>
            {words.kinds[kind]} {decisions.total[kind].toLocaleString(language)}
            {/* A turn in which one call was refused has answers that allowed others: a count of turns says nothing of those. */}
            {kind !== "allowed" && counts !== undefined && counts[OUTCOMES[kind]].turns > 0 && (
              <Link to="/turns" search={{ decision: OUTCOMES[kind], span, ...ofTenants(everywhere) } as never} className="text-accent underline max-sm:flex max-sm:min-h-11 max-sm:items-center">
                {words.inTurns(countText(counts[OUTCOMES[kind]], language))}
              </Link>
            )}
          </li>
        ))}
      </ul>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" className="h-30 w-full" role="img" aria-label={words.chart}>
        <line x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} className="stroke-line" />
        {bars.map(({ at, parts }, place) => (
          <g key={at} className="cursor-pointer" onClick={() => go(at)}>
            <title>{`${clock.format(new Date(at))}${colon}${parts.map(({ kind, count }) => `${words.kinds[kind]} ${count}`).join(", ")}`}</title>
            <rect x={place * step} y="0" width={step} height={HEIGHT} className="fill-transparent hover:fill-raised" />
            {parts.map(({ kind, from, count }) => (
              <rect key={kind} x={place * step + GAP / 2} width={Math.max(1, step - GAP)} y={HEIGHT - ((from + count) / top) * HEIGHT} height={(count / top) * HEIGHT} className={FILLS[kind]} />
            ))}
          </g>
        ))}
      </svg>
      <p className="flex justify-between text-small text-muted">
        <span>{first === undefined ? "" : clock.format(new Date(first.at))}</span>
        <span>{words.now}</span>
      </p>
      {decisions.partial && <p className="text-small text-muted">{words.partial}</p>}
      <details>
        <summary className="text-small text-muted max-sm:py-2">{words.asTable}</summary>
        <div className="max-h-60 overflow-y-auto" tabIndex={0} role="region" aria-label={words.chart}>
          <table className="w-full">
            <thead>
              <tr>
                {[words.from, ...KINDS.map((kind) => words.kinds[kind])].map((name) => (
                  <th key={name} scope="col" className="py-0.5 pr-3 text-left text-small font-medium text-muted">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {[...decisions.buckets].reverse().map((bucket) => (
                <tr key={bucket.at} className="border-t border-line">
                  <td>
                    <button type="button" className="text-accent underline max-sm:min-h-11" onClick={() => go(bucket.at)}>
                      {clock.format(new Date(bucket.at))}
                    </button>
                  </td>
                  {KINDS.map((kind) => (
                    <td key={kind}>{bucket[kind].toLocaleString(language)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </div>
  );
}
