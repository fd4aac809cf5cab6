import type { HookChange, HookVersion, JsonObject } from "../wire/types.ts";
import type { Words } from "../words/use-words.ts";

/** The settings that a change is about, from its JSON Patch: those that change with every change are left out. Pure. */
export function changed(diff: unknown): readonly string[] {
  const paths = (Array.isArray(diff) ? diff : []).map((one: unknown) => (typeof one === "object" && one !== null && "path" in one ? String(one.path) : ""));
  const names = paths.map((path) => path.split("/")[1] ?? "").filter((name) => name !== "" && !ALWAYS.includes(name));
  return [...new Set(names)];
}

/** What a budget became, where a change is about one. Pure. */
export function budgetSet(diff: unknown): number | undefined {
  const said = (Array.isArray(diff) ? diff : []).find((one: unknown) => typeof one === "object" && one !== null && "path" in one && one.path === "/budget_total") as { value?: unknown } | undefined;
  return typeof said?.value === "number" ? said.value : undefined;
}

/** What the budget of a tenant was before each of its changes, by the change, as far as the list goes back; newest first. Pure. */
export function budgetsBefore(changes: readonly Pick<HookChange, "id" | "tenant_id" | "diff">[]): ReadonlyMap<string, number> {
  const now = new Map<string, number>();
  const before = new Map<string, number>();
  for (const { id, tenant_id: tenant, diff } of [...changes].reverse()) {
    const to = budgetSet(diff);
    const from = now.get(tenant);
    if (to !== undefined) {
      if (from !== undefined) {
        before.set(id, from);
      }
      now.set(tenant, to);
    }
  }
  return before;
}

/** Whether a change switched a hook on or off. Pure. */
export function switchedTo(diff: unknown): boolean | undefined {
  const said = (Array.isArray(diff) ? diff : []).find((one: unknown) => typeof one === "object" && one !== null && "path" in one && one.path === "/enabled") as { value?: unknown } | undefined;
  return typeof said?.value === "boolean" ? said.value : undefined;
}

/** What was done, in a word: of a hook that was switched, whether on or off. Pure. */
export function wordOf(change: { readonly action: string; readonly diff: unknown }, words: Words["overview"]["actions"]): string {
  const to = change.action === "toggled" ? switchedTo(change.diff) : undefined;
  if (to !== undefined) {
    return to ? words.switchedOn : words.switchedOff;
  }
  return words[change.action as keyof typeof words] ?? change.action;
}

/** Why somebody changed it, where the JSON Patch of a change says so: of a hook that is off or gone, or of a budget. Pure. */
export function because(diff: unknown): string {
  const said = (Array.isArray(diff) ? diff : []).find((one: unknown) => typeof one === "object" && one !== null && "path" in one && REASONS.includes(String(one.path))) as { value?: unknown } | undefined;
  return typeof said?.value === "string" && !OWN.includes(said.value) ? said.value : "";
}

/** Whether somebody ended a guard and did not say why: Pintle itself says it in what it did. Pure. */
export function owesReason(change: { readonly action: string; readonly actor: string; readonly diff: unknown }): boolean {
  const ends = change.action === "deleted" || ((change.action === "toggled" || change.action === "updated") && switchedTo(change.diff) === false);
  return ends && !change.actor.startsWith("system:") && because(change.diff) === "";
}

/** What a version did to the one before it, and why: of a switch, whether on or off. Pure. */
export function deedOf(version: HookVersion, before: HookVersion | undefined, words: Words["overview"]["actions"]): { readonly word: string; readonly why: string; readonly owes: boolean } {
  const { action, actor, hook } = version;
  const has = (name: string): unknown => (before === undefined || before.hook[name] === hook[name] ? undefined : hook[name]);
  const diff = ["enabled", "disabled_reason"].map((name) => ({ path: `/${name}`, value: has(name) }));
  return { word: wordOf({ action, diff }, words), why: because(diff), owes: owesReason({ action, actor, diff }) };
}

/** What a hook is once `then` is restored over `now`: its settings are those of then, what is the server's, whether it is on, and its scope stay. Pure. */
export const restoredOver = (now: JsonObject, then: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries({ ...now, ...then }).map(([name, was]) => [name, STAYS.includes(name) ? now[name] : was]));

/** The words with which Pintle itself says why a hook is off: what it did says that already. */
const OWN: readonly string[] = ["breaker", "edition", "no_agents"];

const REASONS: readonly string[] = ["/disabled_reason", "/reason"];

/** What stays as it is when an earlier version is restored, as the server has it. */
const STAYS: readonly string[] = ["id", "tenant_id", "source", "version", "tripped_at", "disabled_reason", "created_by", "created_at", "updated_at", "enabled", "scope"];

const ALWAYS: readonly string[] = ["version", "updated_at", "disabled_reason", "reason"];
