import { type ReactNode, useId } from "react";

import { ExactBox } from "../ui/exact.tsx";
import { Name } from "../ui/name.tsx";

export type Fact = readonly [string, ReactNode];

/** Names and values; those that are not known are left out. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className="grid grid-cols-[112px_minmax(0,1fr)] gap-x-3 gap-y-0.5">
      {facts
        .filter(([, value]) => value !== undefined && value !== "" && value !== null)
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="min-w-0 whitespace-pre-wrap">{typeof value === "string" ? <Name of={value} /> : value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** A text or JSON in a box that can be read with keys alone. */
export function Box({ title, value }: { title: string; value: unknown }) {
  const id = useId();
  if (value === undefined || value === "" || value === null) {
    return null;
  }
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return (
    <div className="mt-3">
      <p id={id} className="mb-1 font-medium">
        {title}
      </p>
      <ExactBox text={text} labelledBy={id} />
    </div>
  );
}
