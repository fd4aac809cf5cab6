import { type ReactNode, useState } from "react";

import { useWords } from "../words/use-words.ts";
import { Button } from "./button.tsx";
import { clsx } from "./clsx.ts";

/** The filters of a list. On a telephone they would fill what one sees first: there they open when somebody wants them, or has chosen one; `search` stands there always. */
export function Filters({ search, isChosen, role, children }: { search?: ReactNode; isChosen: boolean; role?: "search"; children: ReactNode }) {
  const words = useWords();
  const [open, setOpen] = useState(isChosen);
  return (
    <div className="mb-3 flex flex-wrap gap-2" role={role}>
      {search}
      <Button className="sm:hidden" aria-expanded={open} onClick={() => setOpen(!open)}>
        {words.filters}
      </Button>
      <div className={clsx("contents", !open && "max-sm:hidden")}>{children}</div>
    </div>
  );
}
