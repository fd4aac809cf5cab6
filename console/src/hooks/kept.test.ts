import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { EMPTY } from "./draft.ts";
import { drop, hasDrafts, isTyped, keep, keptDraft, keptTemplate, placeOf } from "./kept.ts";
import { fromTemplate } from "./templates.ts";

const place = placeOf({ user_id: "anna", tenant_id: "t" }, "new");

test("a draft is kept with the template that it began with", () => {
  const draft = { ...fromTemplate("keys", en), name: "mine" };
  keep(place, draft, fromTemplate("keys", en), "keys");
  expect([keptDraft(place), keptTemplate(place), hasDrafts()]).toEqual([draft, "keys", true]);
  drop(place);
  expect([keptDraft(place), keptTemplate(place), hasDrafts()]).toEqual([undefined, undefined, false]);
});

test("only what somebody typed is missed", () => {
  const began = fromTemplate("keys", en);
  expect([isTyped(began, began), isTyped({ ...began, name: "mine" }, began), isTyped(EMPTY, EMPTY), isTyped({ ...EMPTY, matcher: "x" }, EMPTY)]).toEqual([false, true, false, true]);
});

test("a template that nobody touched is kept, and is no draft that somebody typed", () => {
  const began = fromTemplate("keys", en);
  keep(place, began, began, "keys");
  expect([keptDraft(place), hasDrafts()]).toEqual([began, false]);
  drop(place);
});
