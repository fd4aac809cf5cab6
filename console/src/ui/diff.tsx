import { clsx } from "./clsx.ts";
import { diff, lines } from "./json-diff.ts";

/** Two values side by side. */
export function JsonDiff({ before, after, titles, label }: { before: unknown; after: unknown; titles: readonly [string, string]; label: string }) {
  const all = diff(lines(before), lines(after));
  return (
    <table aria-label={label} className="w-full table-fixed border-collapse overflow-hidden rounded border border-line font-mono">
      <thead>
        <tr>
          {titles.map((title) => (
            <th key={title} scope="col" className="border border-line bg-raised px-2 text-left font-sans text-small font-medium text-muted">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {all.map((line, at) => {
          const same = line.before === line.after;
          return (
            <tr key={at}>
              <Side text={line.before} sign={same ? "" : "−"} className={same ? "" : "bg-block-bg"} />
              <Side text={line.after} sign={same ? "" : "+"} className={same ? "" : "bg-allow-bg"} />
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Side({ text, sign, className }: { text: string | undefined; sign: string; className: string }) {
  return (
    <td className={clsx("border-x border-line px-2 align-top whitespace-pre-wrap", text !== undefined && className)}>
      {text !== undefined && sign !== "" && <span aria-hidden="true">{sign} </span>}
      {text}
    </td>
  );
}
