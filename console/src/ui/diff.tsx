import { clsx } from "./clsx.ts";
import { ExactText, HiddenNote } from "./exact.tsx";
import { diff, type DiffLine, lines } from "./json-diff.ts";

interface Titles {
  readonly titles: readonly [string, string];
  readonly label: string;
}

/** Two values side by side. */
export const JsonDiff = ({ before, after, ...rest }: { before: unknown; after: unknown } & Titles) => <SideBySide lines={diff(lines(before), lines(after))} {...rest} />;

/** Two texts side by side. */
export const TextDiff = ({ before, after, ...rest }: { before: string; after: string } & Titles) => <SideBySide lines={diff(before.split("\n"), after.split("\n"))} {...rest} />;

/** The names of the columns of a table that says what changed. */
export function DiffHead({ titles }: { titles: readonly string[] }) {
  return (
    <thead>
      <tr>
        {titles.map((title) => (
          <th key={title} scope="col" className="border border-line bg-raised px-2 text-left font-sans text-small font-medium text-muted">
            {title}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function SideBySide({ lines: all, titles, label }: { lines: readonly DiffLine[] } & Titles) {
  return (
    <>
      <HiddenNote texts={all.flatMap(({ before, after }) => [before ?? "", before === after ? "" : (after ?? "")])} />
      <table aria-label={label} className="w-full table-fixed border-collapse overflow-hidden rounded border border-line font-mono">
        <DiffHead titles={titles} />
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
    </>
  );
}

function Side({ text, sign, className }: { text: string | undefined; sign: string; className: string }) {
  return (
    <td className={clsx("border-x border-line px-2 align-top whitespace-pre-wrap", text !== undefined && className)}>
      {text !== undefined && sign !== "" && <span aria-hidden="true">{sign} </span>}
      {text !== undefined && <ExactText text={text} />}
    </td>
  );
}
