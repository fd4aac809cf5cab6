import { expect, test } from "vitest";

import { type PintleClient, RequestError } from "../wire/client.ts";
import type { Hook } from "../wire/types.ts";
import { SavedMeanwhile, saveOver } from "./conflict.ts";

/** A server that refuses updates with `refused`, where it does, and has a hook of `version`. */
function server(version: number, refused?: RequestError): { readonly connection: Pick<PintleClient, "request">; readonly asked: string[] } {
  const asked: string[] = [];
  const request = (method: string): Promise<unknown> => {
    asked.push(method);
    return method === "hooks.update" && refused !== undefined ? Promise.reject(refused) : Promise.resolve({ hook: { id: "h", version } as Hook });
  };
  return { connection: { request } as unknown as Pick<PintleClient, "request">, asked };
}

const refusal = (code: "FAILED_PRECONDITION" | "INVALID_REQUEST", message: string): RequestError => new RequestError({ code, message });

test("another version that stands there is a conflict, whatever the words of the refusal are", async () => {
  const { connection } = server(3, refusal("FAILED_PRECONDITION", "in any words"));
  const failed: unknown = await saveOver(connection, "h", { priority: 1 }, 2).catch((error: unknown) => error);
  expect([failed instanceof SavedMeanwhile, failed instanceof SavedMeanwhile && failed.theirs.version]).toEqual([true, 3]);
});

test.each([
  ["the same version stands there", 2, refusal("FAILED_PRECONDITION", "version conflict: have 2")],
  ["it was refused for something else", 3, refusal("INVALID_REQUEST", "version conflict: have 3")],
])("it is no conflict where %s", async (_, version, refused) => {
  await expect(saveOver(server(version, refused).connection, "h", { priority: 1 }, 2)).rejects.toBe(refused);
});

test("what is saved comes back, and nothing is sent where nothing is different", async () => {
  const { connection, asked } = server(2);
  expect((await saveOver(connection, "h", {}, 2)).version).toBe(2);
  expect(asked).toEqual(["hooks.get"]);
});
