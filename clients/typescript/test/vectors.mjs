// Plays the vectors that the Rust reducer made, and compares: node test/vectors.mjs COMPILED

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const compiled = process.argv[2];
assert.ok(compiled, "name the compiled reducer: node test/vectors.mjs dist/index.js");
const reducer = await import(pathToFileURL(resolve(compiled)).href);
const { vectors } = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8"));

/** Whatever a reducer is given stays as it was. */
function frozen(value) {
  if (value !== null && typeof value === "object" && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(frozen);
  }
  return value;
}

function step(state, event, played) {
  switch (event.type) {
    case "asked":
      return reducer.asked(state, event.text, event.sig);
    case "text":
    case "hook":
      return reducer.heard(state, event);
    case "play": {
      const next = reducer.playNextAudio(state);
      assert.equal(next.piece, state.audioQueue[0]);
      played.push(next.text ?? null);
      return next.state;
    }
    case "flush":
      return reducer.flushHistorySegments(state);
    case "stop":
      return reducer.stop(state);
    case "clear":
      return reducer.frontEnd();
    case "take_back":
      return reducer.takeBack(state, event.place, event.its_message);
    default:
      throw new Error(`unknown event ${event.type}`);
  }
}

for (const { name, start, events, played, history } of vectors) {
  const found = [];
  let state = frozen(reducer.frontEnd(start));
  for (const event of events) {
    state = frozen(step(state, frozen(event), found));
  }
  assert.deepStrictEqual(found, played, `${name}: played`);
  assert.deepStrictEqual(state.conversationHistory, history, `${name}: history`);
}
assert.ok(vectors.length >= 100, `only ${vectors.length} vectors`);
console.log(`${vectors.length} vectors agree`);
