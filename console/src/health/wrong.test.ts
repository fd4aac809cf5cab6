import { expect, test } from "vitest";

import type { Budget, DoctorCheck, Hook, Node, Payload } from "../wire/types.ts";
import { lastFound, unprovenBy, worstFirst, wrongWith } from "./wrong.ts";

const hook = (tripped_at: string | null, disabled_reason: string, on_trip = "block"): Hook => ({ enabled: disabled_reason === "", tripped_at, disabled_reason, on_trip }) as unknown as Hook;
const budget = (remaining: number): Budget => ({ monthStart: "2026-11-01", budgetTotal: 1000, used: 1000 - remaining, remaining });
const node = (online: boolean, differs: string[] = []): Node => ({ online, differs }) as unknown as Node;

test.each([
  ["nothing", [hook(null, "")], budget(1000), [node(true)], []],
  ["a breaker", [hook("now", "breaker")], budget(200), [], ["refuses"]],
  ["a breaker of a hook that lets pass what it would look at", [hook("now", "breaker", "allow")], budget(200), [], ["passes"]],
  ["what an edition forbids", [hook(null, "edition")], budget(200), [], ["off"]],
  ["a budget that is low", [], budget(199), [], ["low"]],
  ["a budget that is spent", [], budget(0), [], ["spent"]],
  ["a node that is away", [], budget(1000), [node(false)], ["node"]],
  ["a node with another configuration", [], budget(1000), [node(true, ["main"])], ["node"]],
  ["several, the worst first", [hook("now", "breaker"), hook(null, "no_agents")], budget(-1), [node(false)], ["refuses", "off", "spent", "node"]],
])("%s", (_, hooks, left, nodes, wrong) => {
  expect(wrongWith(hooks, left, nodes)).toEqual(wrong);
});

test("what doctor found counts once it ran, its failures first", () => {
  const check = (name: string, state: DoctorCheck["state"]): DoctorCheck => ({ what: "guard", name, state, step: null, message: "", stderr: "" });
  const checks = [check("a", "ok"), check("b", "failed"), check("c", "note"), check("d", "failed")];
  const at = "2026-11-27T06:00:00Z";
  const guards = { armed: 1, total: 1 };
  expect(worstFirst(checks).map(({ name }) => name)).toEqual(["b", "d", "c", "a"]);
  expect(wrongWith([], budget(1000), [], undefined, { checks, guards, at })).toEqual(["doctor"]);
  expect(wrongWith([], budget(1000), [], undefined, { checks: [check("a", "ok")], guards, at })).toEqual([]);
});

test("guards that doctor could not prove are named", () => {
  const check = (what: string, name: string, state: DoctorCheck["state"]): DoctorCheck => ({ what, name, state, step: null, message: "", stderr: "" });
  const checks = [check("guard", "a", "failed"), check("guard", "b", "ok"), check("store", "", "failed")];
  expect(unprovenBy({ checks, guards: { armed: 1, total: 2 }, at: "2026-11-27T06:00:00Z" })).toEqual([checks[0]]);
  expect(unprovenBy(undefined)).toEqual([]);
});

test("what doctor found last is shown until it runs again", () => {
  const found = (at: string) => ({ checks: [], guards: { armed: 1, total: 1 }, at });
  const [early, late] = [found("2026-11-27T06:00:00Z"), found("2026-11-27T06:00:00.5Z")];
  expect([lastFound(undefined, undefined), lastFound(undefined, null)]).toEqual([undefined, undefined]);
  expect([lastFound(undefined, early), lastFound(early, null), lastFound(early, late), lastFound(late, early)]).toEqual([early, early, late, late]);
});

test("what is broken is told from what did not answer yet", () => {
  const health = (counts: object) => ({ store: { ok: true }, providers: [], processHooks: [], mcpServers: [], skills: [], guards: { counts: { broken: 0, unproven: 0, ...counts } } }) as unknown as Payload<"health.get">;
  expect(wrongWith([], budget(1000), [], health({ broken: 1 }))).toEqual(["broken"]);
  expect(wrongWith([], budget(1000), [], health({ unproven: 1 }))).toEqual(["unproven"]);
  expect(wrongWith([], budget(1000), [], { ...health({}), skills: [{ name: "alpha", code: "E8", why: null }] })).toEqual(["skill"]);
});
