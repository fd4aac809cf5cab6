import { useEffect, useRef, useState } from "react";

import { dropTyped, formPlace, keepTyped, keptTyped } from "./drafts.ts";
import { useWire } from "./use-wire.ts";

/** What is typed in a form. It stays when the form is closed, and comes back after a session ended; `drop` forgets it for then, once it was sent. */
export function useDraft<Typed>(form: string, began: Typed): { readonly typed: Typed; readonly set: (typed: Typed) => void; readonly drop: () => void } {
  const place = formPlace(useWire().me, form);
  const [typed, setTyped] = useState(() => keptTyped<Typed>(place) ?? began);
  const first = useRef(began);
  useEffect(() => keepTyped(place, typed, first.current), [place, typed]);
  return { typed, set: setTyped, drop: () => dropTyped(place) };
}
