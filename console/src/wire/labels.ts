import type { Hook } from "./types.ts";

/** What hooks are called beside each other: those that share a name have their event, too. Pure. */
export function labelsOf(hooks: readonly Pick<Hook, "id" | "name" | "event">[]): ReadonlyMap<string, { readonly name: string; readonly event: string | undefined }> {
  const times = new Map<string, number>();
  for (const { name } of hooks) {
    times.set(name, (times.get(name) ?? 0) + 1);
  }
  return new Map(hooks.map(({ id, name, event }) => [id, { name: name || id, event: name !== "" && (times.get(name) ?? 0) > 1 ? event : undefined }]));
}
