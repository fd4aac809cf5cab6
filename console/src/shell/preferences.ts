import { createContext } from "react";

import type { Language } from "../words/language.ts";
import type { Scheme } from "./scheme.ts";

/** How somebody likes to see the pages, and how they change that. */
export interface Preferences {
  readonly scheme: Scheme;
  readonly language: Language;
  readonly setScheme: (scheme: Scheme) => void;
  readonly setLanguage: (language: Language) => void;
}

export const PreferencesContext = createContext<Preferences | undefined>(undefined);
