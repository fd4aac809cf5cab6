import { Code } from "../ui/code.tsx";
import { TextDiff } from "../ui/diff.tsx";
import { ExactText, HiddenNote } from "../ui/exact.tsx";
import type { JsonObject } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";
import { type CallPart, partsOf } from "./parts.ts";

/** Exactly what would run: a command as a shell reads it, a change of a file side by side, everything else as JSON. */
export function CallView({ tool, input }: { tool: string; input: JsonObject }) {
  return (
    <div className="flex flex-col gap-2" data-testid="call">
      {partsOf(input).map((part, at) => (
        <PartView key={at} part={part} tool={tool} />
      ))}
    </div>
  );
}

function PartView({ part, tool }: { part: CallPart; tool: string }) {
  const words = useWords().approvals;
  switch (part.is) {
    case "command":
      return <Code text={part.text} language="shell" label={words.command} />;
    case "change":
      return (
        <div>
          <Path path={part.path} />
          <TextDiff before={part.before} after={part.after} titles={[words.fileWas, words.fileIs]} label={words.change(part.path)} />
        </div>
      );
    case "file":
      return (
        <div>
          <Path path={part.path} />
          <Code text={part.text} language="plain" label={words.wholeFile(part.path)} className="bg-allow-bg" />
        </div>
      );
    case "rest":
      return <Code text={part.text} language="json" label={words.input(tool)} />;
  }
}

const Path = ({ path }: { path: string }) => (
  <>
    <HiddenNote texts={[path]} />
    <code className="mb-1 block font-semibold">
      <ExactText text={path} />
    </code>
  </>
);
