import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { knownMember } from "./member.ts";

test("what Pintle keeps of an execution is said in words, everything else as it is", () => {
  expect(knownMember("matcher_matched", true, en)).toEqual({ title: "Matcher matches", value: "yes" });
  expect(knownMember("effective", "block", en)).toEqual({ title: "Counts as", value: "block" });
  expect([knownMember("machine", "laptop", en), knownMember("toString", true, en)]).toEqual([undefined, undefined]);
});
