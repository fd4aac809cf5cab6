/** The names that a condition may use, as the server has them; a test holds them against `crates/rules/src/condition`. */

/** The variables, each with its type. */
export const VARIABLES: Readonly<Record<string, string>> = {
  tool_name: "string",
  tool_input: "map",
  depth: "int",
  event: "string",
  agent_id: "string",
  session_id: "string",
  raw_input: "string",
  raw_tool_name: "string",
  first_prompt: "bool",
  shell: "map",
};

/** The members of `shell`. */
export const SHELL: readonly string[] = ["commands", "reads", "writes", "deletes", "urls", "outside", "pipes_to_interpreter", "unknown", "unknown_why"];

/** The members of one of `shell.commands`. */
export const COMMAND: readonly string[] = ["name", "argv", "cwd", "depth"];

/** The functions and the macros, and how each is called. */
export const FUNCTIONS: Readonly<Record<string, string>> = {
  size: "size(value)",
  contains: "text.contains(text)",
  startsWith: "text.startsWith(text)",
  endsWith: "text.endsWith(text)",
  matches: "text.matches(pattern)",
  int: "int(value)",
  uint: "uint(value)",
  double: "double(value)",
  string: "string(value)",
  bytes: "bytes(text)",
  bool: "bool(text)",
  type: "type(value)",
  dyn: "dyn(value)",
  has: "has(map.member)",
  all: "list.all(name, condition)",
  exists: "list.exists(name, condition)",
  exists_one: "list.exists_one(name, condition)",
  map: "list.map(name, value)",
  filter: "list.filter(name, condition)",
};

/** The types, which are values, too. */
export const TYPES: readonly string[] = ["null_type", "bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"];

/** Words that stand for a value. */
export const VALUES: readonly string[] = ["true", "false", "null"];
