import { expect, test } from "vitest";

import type { Budget, DoctorCheck, Hook, Node } from "../wire/types.ts";
import { unprovenBy, worstFirst, wrongWith } from "./wrong.ts";

const hook = (tripped_at: string | null, disabled_reason: string): Hook => ({ enabled: disabled_reason === "", tripped_at, disabled_reason }) as unknown as Hook;
const budget = (remaining: number): Budget => ({ monthStart: "2026-11-01", budgetTotal: 1000, used: 1000 - remaining, remaining });
const node = (online: boolean, differs: string[] = []): Node => ({ online, differs }) as unknown as Node;

test.each([
  ["nothing", [hook(null, "")], budget(1000), [node(true)], []],
  ["a breaker", [hook("now", "breaker")], budget(200), [], ["tripped"]],
  ["what an edition forbids", [hook(null, "edition")], budget(200), [], ["off"]],
  ["a budget that is low", [], budget(199), [], ["low"]],
  ["a budget that is spent", [], budget(0), [], ["spent"]],
  ["a node that is away", [], budget(1000), [node(false)], ["node"]],
  ["a node with another configuration", [], budget(1000), [node(true, ["main"])], ["node"]],
  ["several, the worst first", [hook("now", "breaker"), hook(null, "no_agents")], budget(-1), [node(false)], ["tripped", "off", "spent", "node"]],
])("%s", (_, hooks, left, nodes, wrong) => {
  expect(wrongWith(hooks, left, nodes)).toEqual(wrong);
});

test("what doctor found counts once it ran, its failures first", () => {
  const check = (name: string, state: DoctorCheck["state"]): DoctorCheck => ({ what: "guard", name, state, step: null, message: "", stderr: "" });
  const checks = [check("a", "ok"), check("b", "failed"), check("c", "note"), check("d", "failed")];
  const guards = { armed: 1, total: 1 };
  expect(worstFirst(checks).map(({ name }) => name)).toEqual(["b", "d", "c", "a"]);
  expect(wrongWith([], budget(1000), [], undefined, { checks, guards })).toEqual(["doctor"]);
  expect(wrongWith([], budget(1000), [], undefined, { checks: [check("a", "ok")], guards })).toEqual([]);
});

test("guards that doctor could not prove are named", () => {
  const check = (what: string, name: string, state: DoctorCheck["state"]): DoctorCheck => ({ what, name, state, step: null, message: "", stderr: "" });
  const checks = [check("guard", "a", "failed"), check("guard", "b", "ok"), check("store", "", "failed")];
  expect(unprovenBy({ checks, guards: { armed: 1, total: 2 } })).toEqual([checks[0]]);
  expect(unprovenBy(undefined)).toEqual([]);
});
