import { createContext } from "react";

import type { Language } from "../words/language.ts";

export type Scheme = "auto" | "light" | "dark";

/** How somebody likes to see the pages, and how they change that. */
export interface Preferences {
  readonly scheme: Scheme;
  readonly language: Language;
  readonly setScheme: (scheme: Scheme) => void;
  readonly setLanguage: (language: Language) => void;
}

export const PreferencesContext = createContext<Preferences | undefined>(undefined);

const SCHEME = "pintle.scheme";

export function readScheme(): Scheme {
  const kept = localStorage.getItem(SCHEME);
  return kept === "light" || kept === "dark" ? kept : "auto";
}

export function keepScheme(scheme: Scheme): void {
  localStorage.setItem(SCHEME, scheme);
}

/** Shows everything in `scheme`; the system's where it is `auto`. */
export function show(scheme: Scheme): void {
  const dark = scheme === "dark" || (scheme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}
