/** The settings that a change is about, from its JSON Patch: those that change with every change are left out. Pure. */
export function changed(diff: unknown): readonly string[] {
  const paths = (Array.isArray(diff) ? diff : []).map((one: unknown) => (typeof one === "object" && one !== null && "path" in one ? String(one.path) : ""));
  const names = paths.map((path) => path.split("/")[1] ?? "").filter((name) => name !== "" && !ALWAYS.includes(name));
  return [...new Set(names)];
}

const ALWAYS: readonly string[] = ["version", "updated_at"];
