import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

import { expect, test } from "vitest";

import { isTyped, SKELETONS, skeletonOf, toolOf } from "./skeletons.ts";

const TOOLS = resolve(import.meta.dirname, "../../../crates/agent/src/tools");
/** The files of tools that are called otherwise. */
const FILES: Readonly<Record<string, string>> = { read_file: "read", list_dir: "list", find_files: "find", search_text: "search", write_file: "write", edit_file: "edit", web_fetch: "fetch", spawn: "delegate" };

test("there is an input to begin with for each built-in tool, with the members that it needs", () => {
  const rows = /const ROWS[^=]*= \[([\s\S]*?)\n\];/.exec(readFileSync(`${TOOLS}.rs`, "utf8"))?.[1] ?? "";
  const named = [...rows.matchAll(/Row\(\s*(?:"(\w+)"|(\w+))/g)].map(([, text, constant]) => text ?? (constant ?? "").toLowerCase());
  expect(named.length).toBeGreaterThan(9);
  expect(new Set([...named, "load_skill"])).toEqual(new Set(Object.keys(SKELETONS)));
  const there = new Set(readdirSync(TOOLS));
  for (const [tool, input] of Object.entries(SKELETONS)) {
    const file = `${FILES[tool] ?? tool}.rs`;
    expect([file, there.has(file)]).toEqual([file, true]);
    const source = readFileSync(`${TOOLS}/${file}`, "utf8");
    // A folder need not be said; everything else is needed.
    const needed = /"required": \[([^\]]*)\]/.exec(source)?.[1]?.match(/\w+/g) ?? (source.includes('"path": {') ? ["path"] : []);
    expect([tool, Object.keys(input)]).toEqual([tool, needed]);
  }
});

test.each([
  ["", false],
  ["{}", false],
  [skeletonOf("exec"), false],
  [skeletonOf("nobody"), false],
  ['{"command": "ls -l"}', true],
  ["{half", true],
])("%s: would be missed? %s", (input, is) => {
  expect(isTyped(input)).toBe(is);
});

test("a test begins with a tool that the hook matches", () => {
  expect(["^read_file$", "^(write_file|edit_file)$", "exec", "", ".*", "^(?i)x", "mcp_", "["].map(toolOf)).toEqual(["read_file", "write_file", "exec", "exec", "exec", "exec", "mcp_", "exec"]);
});
