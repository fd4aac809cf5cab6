import { expect, test } from "vitest";

import { partsOf } from "./parts.ts";

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
