import { expect, test } from "vitest";

import type { ConfiguredHook, Hook } from "../wire/types.ts";
import { asksInstead, counted, didLately, EXCEPTION_OF, homeOf, isWanted, isWantedConfigured, labelsOf, lacksOwn, lately, nameInstead, ofTenant, refusesAgain, stateOf, trippedSince, tripsOf } from "./state.ts";

const rule = (id: string, more: Partial<Hook> = {}): Hook => ({ id, name: id, event: "pre_tool_use", enabled: true, tripped_at: null, disabled_reason: "", scope: "tenant", tenant_id: "t", ...more }) as Hook;
const configured = (name: string, family: string, state: ConfiguredHook["state"]): ConfiguredHook => ({ name, family, state }) as ConfiguredHook;

test("hooks are counted once, wherever they come from; texts of skills are not", () => {
  const rules = [rule("a"), rule("b", { enabled: false }), rule("c", { tripped_at: "now" })];
  // One that is asked at two events stands there twice.
  const of = [configured("guard", "process", "armed"), configured("guard", "process", "armed"), configured("ask", "native", "armed"), configured("new", "process", "unproven"), configured("gone", "process", "broken"), configured("spare", "process", "disabled"), configured("text", "skill", "armed")];
  expect(counted(rules, of)).toEqual({ all: 8, on: 5, tripped: 1 });
  expect(counted([], [])).toEqual({ all: 0, on: 0, tripped: 0 });
});

test("the rules of a tenant are its own and everybody's", () => {
  const rules = [rule("a"), rule("b", { tenant_id: "other" }), rule("c", { tenant_id: "other", scope: "global" })];
  expect(ofTenant(rules, "t").map(({ id }) => id)).toEqual(["a", "c"]);
});

test("a rule is its tenant's, and one for everybody is nobody's", () => {
  expect([rule("a"), rule("b", { scope: "agent", tenant_id: "other" }), rule("c", { scope: "global" })].map(homeOf)).toEqual(["t", "other", undefined]);
});

test("a rule for everybody is tripped where its breaker is open, also for owners, who have it as it is", () => {
  const trips = [{ tenant_id: "other", tripped_at: "2026-11-22T06:44:00Z" }];
  const hook = rule("a", { scope: "global", tenant_id: "all", trips });
  expect([stateOf(hook), trippedSince(hook)]).toEqual(["tripped", "2026-11-22T06:44:00Z"]);
  expect(ofTenant([hook], "t").map(stateOf)).toEqual(["on"]);
  // What is shown is what is closed.
  expect([tripsOf(hook), ...ofTenant([hook], "t").map(tripsOf), tripsOf(rule("b"))]).toEqual([["other"], [], []]);
  expect(ofTenant([hook], "other").map(stateOf)).toEqual(["tripped"]);
  expect(counted(ofTenant([hook], "other"), [])).toEqual({ all: 1, on: 0, tripped: 1 });
  expect(stateOf({ ...hook, trips: [] })).toBe("on");
});

test("a rule that asks names the one that refuses, which refuses again without it", () => {
  const hook = rule("guard", { metadata: {} });
  const asks = rule("x", { name: nameInstead(hook), metadata: { [EXCEPTION_OF]: hook.id } });
  const rules = [hook, asks, rule("y", { name: nameInstead(hook), metadata: {} })];
  expect(asksInstead(hook, rules)).toEqual([asks]);
  expect([refusesAgain(asks, rules), refusesAgain(hook, rules)]).toEqual([hook, undefined]);
});

test("hooks that share a name have their event beside it", () => {
  const labels = labelsOf([rule("1", { name: "redactor" }), rule("2", { name: "redactor", event: "stop" }), rule("3", { name: "guard" }), rule("4", { name: "" }), rule("5", { name: "" })]);
  expect([...labels.values()].map(({ name, event }) => [name, event])).toEqual([["redactor", "pre_tool_use"], ["redactor", "stop"], ["guard", undefined], ["4", undefined], ["5", undefined]]);
});

test.each([
  ["on", true, true, true],
  ["armed", true, false, false],
  ["unproven", false, true, false],
  ["broken", false, false, true],
  ["off", false, false, false],
] as const)("who looks for %s finds a rule that answered: %s, one that did not: %s, one that cannot: %s", (state, armed, unproven, broken) => {
  const filter = { text: "", event: "", handler: "", state };
  const hook = rule("a", { matcher: "", if_expr: "" });
  expect([isWanted(hook, filter), isWanted(hook, filter, "unproven"), isWanted(hook, filter, "broken")]).toEqual([armed, unproven, broken]);
  const of = (one: ConfiguredHook["state"]) => isWantedConfigured({ ...configured("p", "process", one), matcher: "" }, filter);
  expect([of("armed"), of("unproven"), of("broken")]).toEqual([armed, unproven, broken]);
});

test("a number that counts no texts of skills leads to a list without them", () => {
  const text = { ...configured("text", "skill", "armed"), event: "before_llm", matcher: "" } as ConfiguredHook;
  const of = (state: string) => isWantedConfigured(text, { text: "", event: "", handler: "", state });
  expect([of(""), of("on"), of("armed")]).toEqual([true, false, false]);
});

test("with nothing but what is shipped nobody has put a hook here yet", () => {
  const shipped = rule("pii-redactor", { source: "builtin" });
  expect(lacksOwn([shipped], [configured("text", "skill", "armed"), configured("ask", "native", "armed")])).toBe(true);
  expect(lacksOwn([shipped, rule("own", { source: "user" })], [])).toBe(false);
  expect(lacksOwn([shipped], [configured("guard", "process", "armed")])).toBe(false);
  expect(lacksOwn([shipped], [configured("adopted", "command", "unproven")])).toBe(false);
});

test("what a hook did is known for each tenant, and for all of them together", () => {
  const counts = (runs: number, tenantId?: string) => ({ name: "a", family: "agent", runs, p95Ms: null, allowed: runs, blocked: 0, asked: 0, faults: 0, event: "pre_tool_use" as const, lastAt: null, ...(tenantId === undefined ? {} : { tenantId }) });
  const all = lately([counts(3), counts(1, "one"), counts(2, "two")]);
  const hook = rule("1", { name: "a" });
  expect([didLately(all, hook)?.runs, didLately(all, hook, "one")?.runs, didLately(all, hook, "two")?.runs, didLately(all, hook, "three")?.runs]).toEqual([3, 1, 2, undefined]);
});
