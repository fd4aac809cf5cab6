import { expect, test } from "vitest";

import { en } from "../words/en.ts";
import { zh } from "../words/zh.ts";
import { EMPTY, toRecord } from "./draft.ts";
import { drop, keep, keptDraft, placeOf } from "./kept.ts";
import { ANY_EVENT, fromTemplate, type Template, templateOf, TEMPLATES, tryOutOf } from "./templates.ts";

test.each(Object.entries({ en, "zh-CN": zh }).flatMap(([language, words]) => TEMPLATES.map((template) => [language, template, words] as const)))("%s: %s has a name, and its script is one", (_, template, words) => {
  const draft = fromTemplate(template, words);
  expect(draft.name).not.toBe("");
  if (draft.handler === "script") {
    // As the server does: it is parsed, and has the function.
    expect(typeof new Function(`${draft.source}; return handle;`)()).toBe("function");
  }
  expect(toRecord(draft)["event"]).toBe(draft.event);
});

/** What a script of a template says about an event of its own. */
function said(template: Template): Record<string, unknown> {
  const { input, text } = tryOutOf(template, en);
  const { command = "" } = JSON.parse(input) as { command?: string };
  const argv = command.split(" ");
  const event = { rawInput: text, shell: { commands: [{ name: argv[0], argv }], outside: argv.filter((word) => word.startsWith("/")) } };
  const handle = new Function(`${fromTemplate(template, en).source}; return handle;`)() as (event: unknown) => Record<string, unknown>;
  return handle(event);
}

test("each template is tried with an event that it stops, changes or adds to", () => {
  expect(said("forcePush")["decision"]).toBe("block");
  expect(said("outside")["decision"]).toBe("ask");
  expect(said("keys")["updatedInput"]).toEqual({ rawInput: "My key is [KEY], please use it." });
  expect(said("context")["additionalContext"]).toContain("main branch");
  expect(tryOutOf("judge", en).input).toContain("rm -rf");
  expect(tryOutOf(undefined, en)).toBe(ANY_EVENT);
});

test("an address names a template, or none", () => {
  expect(templateOf("keys")).toBe("keys");
  expect(templateOf("constructor")).toBeUndefined();
  expect(templateOf(undefined)).toBeUndefined();
});

test("a draft is kept for whoever typed it", () => {
  const [anna, ben] = ["anna", "ben"].map((user_id) => placeOf({ user_id, tenant_id: "t" }, "new")) as [string, string];
  keep(anna, { ...EMPTY, name: "half" }, EMPTY);
  expect(keptDraft(anna)?.name).toBe("half");
  expect(keptDraft(ben)).toBeUndefined();
  drop(anna);
  expect(keptDraft(anna)).toBeUndefined();
});
