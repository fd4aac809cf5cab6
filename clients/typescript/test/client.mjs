// Plays the client against real hosts: node test/client.mjs COMPILED WS FIRST PID SECOND

import assert from "node:assert/strict";
import { createServer, connect as dial } from "node:net";
import { once } from "node:events";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [compiled, ws, first, pid, second] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(resolve(path)).href);
const { ConnectionError, PintleClient, RequestError, waitBefore } = await load(compiled);
const { WebSocket } = await load(ws);

/** Stands between a client and a host, and cuts what goes through it. */
class Proxy {
  #sockets = new Set();
  #server = createServer((near) => {
    if (this.target === undefined) {
      near.destroy();
      return;
    }
    const [host, port] = this.target.split(":");
    const far = dial({ host, port: Number(port) });
    for (const [one, other] of [[near, far], [far, near]]) {
      this.#sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });

  constructor(target) {
    this.target = target;
  }

  async url() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `ws://127.0.0.1:${this.#server.address().port}/ws`;
  }

  cut() {
    this.#sockets.forEach((socket) => socket.destroy());
  }

  close() {
    this.cut();
    this.#server.close();
  }
}

/** The next event `name` that `wanted` picks. */
function next(client, name, wanted = () => true) {
  return new Promise((found) => {
    const stop = client.on(name, (payload) => {
      if (wanted(payload)) {
        stop();
        found(payload);
      }
    });
  });
}

const rejected = (promise) => promise.then(() => assert.fail("it was not rejected"), (error) => error);
const session = (name) => `agent:main:ws:direct:${name}`;
const proxy = new Proxy(first);
const url = await proxy.url();
const credentials = (user_id) => ({ token: "a-token-of-this-test", user_id });
const open = (user, more = {}) => new PintleClient(url, { WebSocket, credentials: credentials(user), firstWaitMs: 20, ...more });

const tests = {
  async "what is asked for is answered, and events come in order"() {
    const client = open("anna");
    const states = [];
    client.on("state", (state) => states.push(state.is));
    const welcome = await client.connect();
    assert.deepEqual([welcome.protocol, welcome.user_id, welcome.role], [3, "anna", "admin"]);
    const { agents } = await client.request("agents.list", {});
    assert.equal(agents[0].id, "main");
    const kinds = [];
    const hooks = [];
    client.on("agent", (event) => kinds.push(event.type));
    client.on("hook", (frame) => hooks.push(frame));
    client.on("gap", (gap) => assert.fail(JSON.stringify(gap)));
    const answer = await client.chat({ sessionKey: session("one"), message: "hi", stream: true, history: [] });
    assert.equal(answer.content, "abc");
    assert.deepEqual(kinds.filter((kind) => kind !== "activity"), ["run.started", "chunk", "chunk", "chunk", "run.completed"]);
    assert.deepEqual(hooks.map((it) => [it.name, it.role, it.content]), [["tone", "user", "be kind"]]);
    client.close();
    assert.deepEqual(states, ["connecting", "connected", "closed"]);
  },

  async "a refusal has its code"() {
    const client = open("anna");
    await client.connect();
    const error = await rejected(client.request("chat.history", { sessionKey: session("nowhere") }));
    assert.ok(error instanceof RequestError);
    assert.deepEqual([error.code, error.retryable, error.retryAfterMs], ["NOT_FOUND", false, undefined]);
    client.close();
  },

  async "too much is told with the time to wait"() {
    const client = open("ben");
    await client.connect();
    const all = Array.from({ length: 6 }, (_, i) => client.request("chat.send", { sessionKey: session(`b${i}`), message: "x" }));
    const refused = (await Promise.allSettled(all)).filter((it) => it.status === "rejected").map((it) => it.reason);
    assert.equal(refused.length, 1);
    assert.equal(refused[0].code, "RESOURCE_EXHAUSTED");
    assert.ok(refused[0].retryable && refused[0].retryAfterMs > 0);
    client.close();
  },

  async "a cut connection rejects what is under way, and comes back"() {
    const client = open("cleo");
    await client.connect();
    const begun = next(client, "agent", (event) => event.type === "run.started");
    const answer = rejected(client.chat({ sessionKey: session("cut"), message: "hi" }));
    await begun;
    const again = next(client, "reconnected");
    const waiting = next(client, "state", (state) => state.is === "waiting");
    proxy.cut();
    const error = await answer;
    assert.ok(error instanceof ConnectionError && error.wasSent, String(error));
    assert.match(error.message, /^the connection was lost before chat\.send was answered/);
    await waiting;
    const unsent = await rejected(client.request("agents.list", {}));
    assert.ok(unsent instanceof ConnectionError && !unsent.wasSent, String(unsent));
    assert.equal((await again).user_id, "cleo");
    // The turn went on without its client.
    const status = await client.request("chat.session.status", { sessionKey: session("cut") });
    if (status.isRunning) {
      await next(client, "agent", (event) => event.type === "run.completed");
    }
    const { messages } = await client.request("chat.history", { sessionKey: session("cut") });
    assert.equal(messages.at(-1).content, "abc");
    client.close();
  },

  async "tries are further and further apart while nobody is there"() {
    const client = open("dora", { random: () => 1 });
    await client.connect();
    const waits = [];
    const fourth = new Promise((found) => {
      client.on("state", (state) => {
        if (state.is === "waiting" && waits.push(state.retryInMs) === 4) found();
      });
    });
    proxy.target = undefined;
    proxy.cut();
    await fourth;
    assert.deepEqual(waits, [20, 20, 40, 80]);
    proxy.target = first;
    await next(client, "reconnected");
    client.close();
    const of = (attempt, random) => waitBefore(attempt, 250, 15_000, random);
    assert.deepEqual([of(1, 0), of(1, 1), of(2, 1), of(7, 1), of(8, 1), of(5000, 0)], [125, 250, 500, 15_000, 15_000, 7500]);
  },

  async "a signal stops the run, and only it"() {
    const client = open("emil");
    await client.connect();
    const stop = new AbortController();
    const begun = next(client, "agent", (event) => event.type === "run.started");
    const answer = rejected(client.chat({ sessionKey: session("stop"), message: "hi" }, { signal: stop.signal }));
    await begun;
    const cancelled = next(client, "agent", (event) => event.type === "run.cancelled");
    stop.abort();
    assert.equal((await answer).name, "AbortError");
    assert.equal((await cancelled).sessionKey, session("stop"));
    assert.equal((await rejected(client.request("agents.list", {}, { signal: stop.signal }))).name, "AbortError");
    assert.equal((await client.request("agents.list", {})).agents.length, 1);
    client.close();
  },

  async "what did not arrive is told"() {
    let swallowed;
    class Forgetful extends WebSocket {
      set onmessage(listener) {
        super.onmessage = (event) => {
          const frame = JSON.parse(event.data);
          if (swallowed === undefined && frame.payload?.type === "chunk") {
            swallowed = frame.seq;
          } else {
            listener(event);
          }
        };
      }
    }
    const client = open("fred", { WebSocket: Forgetful });
    await client.connect();
    const gap = next(client, "gap");
    await client.chat({ sessionKey: session("gap"), message: "hi", stream: true });
    assert.deepEqual(await gap, { from: swallowed, to: swallowed });
    client.close();
  },

  async "who is not let in does not knock again"() {
    const client = new PintleClient(url, { WebSocket, credentials: async () => ({ token: "wrong" }) });
    const error = await rejected(client.connect());
    assert.equal(error.code, "UNAUTHORIZED");
    assert.equal(client.state.is, "closed");
    const closed = open("gina");
    const connecting = rejected(closed.connect());
    closed.close();
    assert.equal((await connecting).message, "the client was closed");
    const stop = new AbortController();
    const stopped = rejected(open("gina").connect(stop.signal));
    stop.abort();
    assert.equal((await stopped).name, "AbortError");
  },

  async "where there is no WebSocket, that is said"() {
    if (globalThis.WebSocket === undefined) {
      const error = await rejected(new PintleClient(url).connect());
      assert.match(error.message, /^there is no WebSocket here: give one as option `WebSocket`/);
    }
  },

  async "a host that goes away is followed to the next one"() {
    const client = open("hans");
    await client.connect();
    const begun = next(client, "agent", (event) => event.type === "run.started");
    const answer = client.chat({ sessionKey: session("drain"), message: "hi" });
    await begun;
    const shutdown = next(client, "shutdown");
    const again = next(client, "reconnected");
    process.kill(Number(pid), "SIGTERM");
    assert.ok((await shutdown).deadlineMs > 0);
    proxy.target = second;
    assert.equal((await answer).content, "abc");
    assert.equal((await again).user_id, "hans");
    assert.equal((await client.request("agents.list", {})).agents[0].id, "main");
    client.close();
  },
};

for (const [name, test] of Object.entries(tests)) {
  const late = setTimeout(() => {
    console.error(`${name}: it takes too long`);
    process.exit(1);
  }, 60_000);
  try {
    await test();
  } catch (error) {
    console.error(`${name}:`);
    throw error;
  } finally {
    clearTimeout(late);
  }
}
proxy.close();
console.log(`${Object.keys(tests).length} tests passed`);
