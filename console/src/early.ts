/** What is begun before the pages are there: a connection, the texts, the list of pages, and the page at this address. */
import { open } from "./shell/dial.ts";
import { drawList, letGo } from "./shell/first-look.ts";
import { loaderOf } from "./shell/pages.ts";
import { readScheme, show } from "./shell/scheme.ts";
import { readLanguage } from "./words/language.ts";
import { speak } from "./words/speak.ts";

/** The longest that pages wait for their list to be seen, in milliseconds: in a tab that nobody looks at it never is. */
const SEEN_MS = 500;

const language = readLanguage();
document.documentElement.lang = language;
show(readScheme());
const opened = open();
const spoken = speak(language);
// What shows the pages takes a slow machine long: first of all somebody sees where they can go, and goes there.
const seen = drawList(language)
  ? new Promise<void>((done) => {
      requestAnimationFrame(() => setTimeout(done));
      setTimeout(done, SEEN_MS);
    })
  : Promise.resolve();
const main = seen.then(() => {
  // What goes wrong here is said when the page is shown.
  loaderOf(location.pathname)?.().catch(() => undefined);
  return import("./main.tsx");
});
Promise.all([main, spoken, opened])
  .then(([{ start }, words, known]) => start(known, words))
  .catch((error: unknown) => {
    letGo();
    throw error;
  });
