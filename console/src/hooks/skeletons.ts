/** What a call of each built-in tool looks like at least: a test holds the names against `crates/agent/src/tools`. */
export const SKELETONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  exec: { command: "ls" },
  read_file: { path: "README.md" },
  list_dir: { path: "." },
  find_files: { pattern: "**/*.md" },
  search_text: { pattern: "TODO" },
  write_file: { path: "notes.md", content: "# Notes\n" },
  edit_file: { path: "notes.md", old_text: "one", new_text: "two" },
  web_fetch: { url: "https://example.com/" },
  send_file: { path: "report.pdf" },
  delegate: { agent: "", task: "" },
  spawn: { agent: "", task: "" },
  load_skill: { name: "" },
};

/** The input of a tool to begin with, as JSON; of a tool that nobody knows here, an empty one. Pure. */
export const skeletonOf = (tool: string): string => JSON.stringify(SKELETONS[tool] ?? {}, null, 2);

/** The tool that a test begins with where nothing else is known. */
const USUAL = "exec";

/** The tool that a test of a hook with `matcher` begins with: the first that it names, where it matches that. Pure. */
export function toolOf(matcher: string): string {
  const name = /^\^?\(?([A-Za-z]\w*)/.exec(matcher)?.[1] ?? "";
  try {
    return name !== "" && new RegExp(matcher).test(name) ? name : USUAL;
  } catch {
    return USUAL;
  }
}

/** Whether an input is one that somebody would miss: not empty, and none to begin with. Pure. */
export function isTyped(input: string): boolean {
  try {
    const compact = JSON.stringify(JSON.parse(input));
    return compact !== "{}" && !Object.values(SKELETONS).some((one) => JSON.stringify(one) === compact);
  } catch {
    return input.trim() !== "";
  }
}
