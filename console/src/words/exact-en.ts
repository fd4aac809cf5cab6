import { count } from "./count.ts";

/** The texts about foreign texts that are shown exactly, in English. */
export const exact = {
  hidden: (code: string, times: number) => (times === 1 ? code : `${code} × ${times.toLocaleString("en")}`),
  spaces: (n: number) => count(n, "blank", "blanks"),
  lines: (n: number) => count(n, "empty line", "empty lines"),
  note: (n: number, code: string) => `${count(n, "hidden character is", "hidden characters are")} shown as ${n === 1 ? `the code ${code}` : `codes such as ${code}`}. Without the codes, this could look like something else.`,
  below: (n: number) => `${count(n, "more line", "more lines")} below: show all`,
};
