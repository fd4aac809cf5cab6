import type { ReactNode } from "react";

import { useWords } from "../words/use-words.ts";
import { clsx } from "./clsx.ts";
import { Card } from "./page.tsx";

/** Rows with named cells; a list of cards where the page is narrow. */
export function Table({ label, head, children }: { label: string; head: readonly string[]; children: ReactNode }) {
  const { actions } = useWords();
  return (
    <Card className="overflow-hidden">
      <table aria-label={label} className="w-full max-md:block">
        <thead className="max-md:sr-only">
          <tr>
            {head.map((name, at) => (
              <th key={at} scope="col" className={clsx("px-3 py-1 text-small font-medium text-muted", name === actions ? "text-right" : "text-left")}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="max-md:block">{children}</tbody>
      </table>
    </Card>
  );
}

export function Row({ name, children }: { name?: string; children: ReactNode }) {
  return (
    <tr data-name={name} className="border-t border-line first:border-t-0 md:first:border-t max-md:block max-md:px-3 max-md:py-2">
      {children}
    </tr>
  );
}

/** A cell; where the page is narrow its name stands before it. */
export function Cell({ name, children, className = "" }: { name?: string; children: ReactNode; className?: string }) {
  return (
    <td className={`px-3 py-1.5 align-top max-md:flex max-md:gap-2 max-md:px-0 max-md:py-0.5 ${className}`}>
      {name !== undefined && (
        <span aria-hidden="true" className="hidden w-28 shrink-0 text-muted max-md:inline">
          {name}
        </span>
      )}
      <span className="min-w-0 md:contents">{children}</span>
    </td>
  );
}

/** What can be done with a row. */
export function Actions({ children }: { children: ReactNode }) {
  return (
    <td className="px-3 py-1 align-top max-md:block max-md:px-0">
      <span className="flex flex-wrap justify-end gap-2 max-md:justify-start">{children}</span>
    </td>
  );
}
