import { expect, test } from "vitest";

import { draftPlace, dropDraft, keepDraft, keptDraft } from "./kept-draft.ts";

const anna = { user_id: "anna", tenant_id: "t" };
const text = (said: string) => ({ text: said, edited: undefined, media: [] });

test("a message that was taken is no draft any more, and what was typed since stays", () => {
  const place = draftPlace(anna, "agent:main:ws:direct:c");
  keepDraft(place, text("first"));
  dropDraft(place, "first");
  expect(keptDraft(place)).toBeUndefined();
  keepDraft(place, text("second"));
  dropDraft(place, "first");
  expect(keptDraft(place)?.text).toBe("second");
});

test("a draft is kept for its user, tenant and conversation alone, and forgotten once it is empty", () => {
  const place = draftPlace(anna, "agent:main:ws:direct:a");
  keepDraft(place, text("half a sen"));
  expect(keptDraft(place)?.text).toBe("half a sen");
  for (const other of [draftPlace({ ...anna, user_id: "ben" }, "agent:main:ws:direct:a"), draftPlace({ ...anna, tenant_id: "u" }, "agent:main:ws:direct:a"), draftPlace(anna, "agent:main:ws:direct:b")]) {
    expect(keptDraft(other)).toBeUndefined();
  }
  keepDraft(place, text(""));
  expect(keptDraft(place)).toBeUndefined();
  keepDraft(place, { ...text(""), media: ["media://1"] });
  expect(keptDraft(place)?.media).toEqual(["media://1"]);
});
