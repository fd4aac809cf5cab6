import { expect, test } from "vitest";

import { ConnectionError, RequestError } from "./client.ts";
import { isTakenAway } from "./session.ts";

test("a connection that the server took away is told from one that was lost", () => {
  expect(isTakenAway(new ConnectionError("access was revoked", false, 1008))).toBe(true);
  expect(isTakenAway(new ConnectionError("the connection was lost", false, 1006))).toBe(false);
  expect(isTakenAway(new RequestError({ code: "UNAUTHORIZED", message: "access was revoked" }))).toBe(false);
});
