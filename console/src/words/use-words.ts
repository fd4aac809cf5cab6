import { createContext, useContext } from "react";

import type { Language } from "./language.ts";
import type { Spoken, Words } from "./speak.ts";

export type { Words } from "./speak.ts";

export const SpokenContext = createContext<Spoken | undefined>(undefined);

function useSpoken(): Spoken {
  const spoken = useContext(SpokenContext);
  if (spoken === undefined) {
    throw new Error("there are words wherever pages are shown");
  }
  return spoken;
}

export const useLanguage = (): Language => useSpoken().language;
export const useWords = (): Words => useSpoken().words;
