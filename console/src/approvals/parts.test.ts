import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { zh } from "../words/zh.ts";
import type { Approval } from "../wire/types.ts";
import { inOrder, isOpen, partsOf, whoMay } from "./parts.ts";

const json = (value: object): string => JSON.stringify(value, null, 2);

test.each([
  [{ command: "ls" }, [{ is: "command", text: "ls" }]],
  [{ cmd: "ls", timeout: 3 }, [{ is: "command", text: "ls" }, { is: "rest", text: json({ timeout: 3 }) }]],
  [{ path: "a", old_text: "x", new_text: "" }, [{ is: "change", path: "a", before: "x", after: "" }]],
  [{ path: "a", old_text: "x", new_text: "y", replace_all: true }, [{ is: "change", path: "a", before: "x", after: "y" }, { is: "rest", text: json({ replace_all: true }) }]],
  [{ path: "a", content: "x\n" }, [{ is: "file", path: "a", text: "x\n" }]],
  [{ path: "a", content: 7 }, [{ is: "rest", text: json({ path: "a", content: 7 }) }]],
  [{}, [{ is: "rest", text: "{}" }]],
])("%j", (input, expected) => {
  expect(partsOf(input)).toEqual(expected);
});

test.each([
  [null, false, "Administrators, and the user in whose conversation it waits."],
  [null, true, "Administrators. Not anna, who asked."],
  [["admin", "carl"], false, "Users or roles named for this agent: admin, carl."],
  [["carl"], true, "Users or roles named for this agent: carl. Not anna, who asked."],
  [[], true, "Nobody: the configuration names no approver for this agent."],
] as const)("of %j, other than the asker %s: %s", (named, otherThanAsker, said) => {
  expect(whoMay({ named, otherThanAsker, asker: "anna", you: false }, en.approvals)).toBe(said);
});

test("sentences stand beside each other as a language has them", () => {
  expect(whoMay({ named: ["carl"], otherThanAsker: true, asker: "anna", you: false }, zh.approvals)).toBe("为此智能体指定的用户或角色：carl。提出请求的 anna 除外。");
});

test("what waits, or was approved and has not run, is still open", () => {
  expect((["waiting", "approved", "used", "refused", "void", "expired"] as const).filter(isOpen)).toEqual(["waiting", "approved"]);
});

test("what waits stands above what was answered", () => {
  const one = (state: Approval["state"], minute: number) => ({ state, asked_at: `2026-01-01T00:0${minute}:00Z` }) as Approval;
  const all = [one("used", 1), one("waiting", 2), one("refused", 3), one("waiting", 4)];
  expect(inOrder(all).map(({ state, asked_at }) => `${state} ${asked_at.slice(15, 16)}`)).toEqual(["waiting 2", "waiting 4", "refused 3", "used 1"]);
});
