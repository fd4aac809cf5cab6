export type Language = "en" | "zh-CN";

const LANGUAGE = "pintle.language";

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

export function readLanguage(): Language {
  return languageOf(localStorage.getItem(LANGUAGE), navigator.languages);
}

export function keepLanguage(language: Language): void {
  localStorage.setItem(LANGUAGE, language);
}
