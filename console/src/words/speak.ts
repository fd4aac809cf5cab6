import type { en } from "./en.ts";
import { isolated } from "./isolated.ts";
import type { Language } from "./language.ts";

export type Words = typeof en;

/** A language, and every text of the pages in it. */
export interface Spoken {
  readonly language: Language;
  readonly words: Words;
}

/** Gets the texts of a language; nobody waits for those of the other one. */
export const speak = async (language: Language): Promise<Spoken> => ({ language, words: isolated(language === "en" ? (await import("./en.ts")).en : (await import("./zh.ts")).zh) });
