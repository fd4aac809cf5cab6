import { createContext, useContext } from "react";

import { en } from "./en.ts";
import { zh } from "./zh.ts";

export type Language = "en" | "zh-CN";
export type Words = typeof en;

export const CATALOGUES: Readonly<Record<Language, Words>> = { en, "zh-CN": zh };

export const LanguageContext = createContext<Language>("en");

export const useLanguage = (): Language => useContext(LanguageContext);
export const useWords = (): Words => CATALOGUES[useLanguage()];

/** The language that somebody chose, or else the first of their browser's that there is. */
export function languageOf(chosen: string | null, browser: readonly string[]): Language {
  if (chosen === "en" || chosen === "zh-CN") {
    return chosen;
  }
  for (const language of browser) {
    if (language.toLowerCase().startsWith("zh")) {
      return "zh-CN";
    }
    if (language.toLowerCase().startsWith("en")) {
      return "en";
    }
  }
  return "en";
}
