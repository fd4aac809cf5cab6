import { expect, test } from "vitest";

import { DONE, Gateway, isComplaint, Rig, signedIn } from "./rig.ts";

test.each([
  ["error", "Failed to load resource: the server responded with a status of 404 (Not Found)", false],
  ["error", "WebSocket connection to 'ws://127.0.0.1:1/ws' failed: Error in connection establishment: net::ERR_CONNECTION_REFUSED", false],
  ["error", "Loading the image 'http://127.0.0.1:40123/415.png' violates the following Content Security Policy directive: \"img-src 'self'\".", true],
  ["error", "Refused to apply inline style: WebSocket connection, 404", true],
  ["log", "Refused", false],
])("%s, %s: a complaint? %s", (type, text, is) => {
  expect(isComplaint(type, text)).toBe(is);
});

test("what breaks the policy of a page is noticed, whatever numbers stand in its address", async () => {
  const rig = await Rig.start();
  const gateway = await Gateway.start({ replies: [DONE] });
  const page = await signedIn(await rig.person(), gateway, "/chain", "anna");
  expect(rig.complaints).toEqual([]);
  await page.evaluate(() => {
    const image = document.createElement("img");
    image.src = "http://127.0.0.1:40123/415.png";
    document.body.append(image);
    document.body.setAttribute("style", "color: red");
  });
  await expect.poll(() => rig.complaints.filter((said) => said.includes("Content Security Policy") || said.includes("violates")).length).toBe(2);
  await rig.close();
  await gateway.close();
});
