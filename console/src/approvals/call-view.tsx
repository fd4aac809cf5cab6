import type { JsonObject } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";

/** The arguments that hold a command. */
const COMMANDS = ["cmd", "command"];

/** Exactly what would run: a command as it is, everything else as JSON. */
export function CallView({ tool, input }: { tool: string; input: JsonObject }) {
  const words = useWords().approvals;
  const command = COMMANDS.map((name) => input[name]).find((value) => typeof value === "string");
  const rest = Object.fromEntries(Object.entries(input).filter(([name, value]) => !(COMMANDS.includes(name) && value === command)));
  const box = "max-h-100 overflow-auto rounded border border-line bg-surface p-3 whitespace-pre-wrap";
  return (
    <div className="flex flex-col gap-2" data-testid="call">
      {typeof command === "string" && (
        <pre tabIndex={0} role="region" aria-label={words.command} className={box}>
          {command}
        </pre>
      )}
      {(typeof command !== "string" || Object.keys(rest).length > 0) && (
        <pre tabIndex={0} role="region" aria-label={words.input(tool)} className={box}>
          {JSON.stringify(typeof command === "string" ? rest : input, null, 2)}
        </pre>
      )}
    </div>
  );
}
