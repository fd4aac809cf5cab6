import { useState } from "react";

import { Button } from "../ui/button.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { useHooks } from "../wire/queries.ts";
import { useWords } from "../words/use-words.ts";
import { Box } from "./box.tsx";
import { testOf } from "./as-test.ts";
import { download } from "../ui/download.ts";
import type { TurnHook, TurnSpan } from "../wire/types.ts";

/** The same event again, for the hook alone: a line for a terminal, and a file with what it is about. */
export function OpenAsTest({ hook, span, prompt }: { hook: TurnHook; span: TurnSpan; prompt: string | null }) {
  const words = useWords().turns;
  const [open, setOpen] = useState(false);
  const test = testOf(hook, span, prompt, useHooks().data ?? []);
  return test === undefined ? null : (
    <div className="mt-3">
      <Button onClick={() => setOpen(true)}>{words.openAsTest}</Button>
      <Dialog open={open} onClose={() => setOpen(false)} title={words.openAsTest} about={words.openAsTestAbout} wide>
        <Box title={words.testLine} value={test.line} />
        <Box title={test.name} value={test.text} />
        <div className="mt-3 flex gap-2">
          <CopyButton text={test.line}>{words.copyLine}</CopyButton>
          <Button onClick={() => download(test.name, test.text)}>{words.saveFile}</Button>
        </div>
      </Dialog>
    </div>
  );
}
