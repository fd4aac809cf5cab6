/** What is begun before the pages are there: a connection, the texts, and the page at this address. */
import { open } from "./shell/dial.ts";
import { loaderOf } from "./shell/pages.ts";
import { readLanguage } from "./words/language.ts";
import { speak } from "./words/speak.ts";

const opened = open();
const spoken = speak(readLanguage());
// What goes wrong here is said when the page is shown.
loaderOf(location.pathname)?.().catch(() => undefined);
void Promise.all([import("./main.tsx"), spoken, opened]).then(([{ start }, words, known]) => start(known, words));
