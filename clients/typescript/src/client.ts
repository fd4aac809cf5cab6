/**
 * A connection to a host, for browsers and for Node: typed methods, events, and a connection that comes back.
 *
 * Nothing is sent twice. A request that was under way when the connection was lost is rejected; whoever asked decides
 * whether to ask again. Events are numbered: a gap is told, and whoever needs what was missed fetches it.
 */

import type { ApiError, ErrorCode, Events, HookFrame, Methods } from "./protocol.generated.js";
import { PROTOCOL } from "./protocol.generated.js";

/** What is used of a WebSocket: that of browsers, of Node from version 22 on, or of the package `ws`. */
export interface SocketLike {
  send(text: string): void;
  close(code?: number, reason?: string): void;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
}

/** Makes a socket: `WebSocket` of browsers or of `ws`. */
export type SocketConstructor = new (url: string) => SocketLike;

/** A method, other than `connect`. */
export type Method = Exclude<keyof Methods, "connect">;

/** What `connect` answers. */
export type Welcome = Methods["connect"]["payload"];

/** What a client may be told, beside its options. */
export interface ClientOptions {
  /** The params of `connect`, or what gets them anew for every connection: a token may have changed. */
  readonly credentials?: Methods["connect"]["params"] | (() => Promise<Methods["connect"]["params"]>);
  /** Makes sockets; the global `WebSocket` unless it is given. */
  readonly WebSocket?: SocketConstructor;
  /** How long the first wait before a new try is, in milliseconds; it doubles with every try. 250 unless it is given. */
  readonly firstWaitMs?: number;
  /** How long a wait is at most, in milliseconds. 15,000 unless it is given. */
  readonly longestWaitMs?: number;
  /** How long a connection may take to be made, in milliseconds. 10,000 unless it is given. */
  readonly connectTimeoutMs?: number;
  /** A number from 0 up to 1, for waits that differ between clients; `Math.random` unless it is given. */
  readonly random?: () => number;
}

/** The state of a connection. */
export type ConnectionState =
  | { readonly is: "connecting"; readonly attempt: number }
  | { readonly is: "connected"; readonly welcome: Welcome }
  /** The next try is after `retryInMs`. */
  | { readonly is: "waiting"; readonly retryInMs: number; readonly error: Error }
  /** It was closed here, or the host does not let this client in. */
  | { readonly is: "closed"; readonly error?: Error };

/** What a client tells, by name: all events of the protocol, and what happens to the connection. */
export type Told = Events & {
  /** A text of a skill that stays. */
  readonly hook: HookFrame;
  /** Events `from` to `to` did not arrive: fetch what you show anew. */
  readonly gap: { readonly from: number; readonly to: number };
  /** Another connection than before: what happened in between was not told. Fetch what you show anew. */
  readonly reconnected: Welcome;
  readonly state: ConnectionState;
};

/** A request was refused by the host. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly code: ErrorCode;
  readonly details: unknown;
  /** Whether the same may succeed later. */
  readonly retryable: boolean;
  /** How long to wait before that. */
  readonly retryAfterMs: number | undefined;
  /** Which request it was: the log of the host calls it so, too. */
  readonly requestId: string | undefined;

  constructor(error: ApiError, requestId?: string) {
    super(error.message);
    this.code = error.code;
    this.details = error.details;
    this.retryable = error.retryable ?? false;
    this.retryAfterMs = error.retryAfterMs;
    this.requestId = requestId;
  }
}

/** The connection was lost, or is not there. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  /** Whether a request was sent: then nobody knows whether it was carried out. */
  readonly wasSent: boolean;
  /** The code with which the host closed, if it did. */
  readonly closeCode: number | undefined;

  constructor(message: string, wasSent: boolean, closeCode?: number) {
    super(message);
    this.wasSent = wasSent;
    this.closeCode = closeCode;
  }
}

interface Pending {
  readonly method: string;
  readonly resolve: (payload: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Refusals of `connect` after which there is no point in trying again with the same credentials. */
const FINAL: readonly ErrorCode[] = ["UNAUTHORIZED", "TENANT_ACCESS_REVOKED", "INVALID_REQUEST"];

/**
 * How long to wait before the try number `attempt`, counted from 1, in milliseconds: from half of it to all of it, so that
 * those who lost one host do not all come back at once.
 */
export function waitBefore(attempt: number, firstMs: number, longestMs: number, random: number): number {
  const whole = Math.min(longestMs, firstMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(whole / 2 + (whole / 2) * random);
}

/** One client of one host. */
export class PintleClient {
  readonly #url: string;
  readonly #options: ClientOptions;
  readonly #listeners = new Map<string, Set<(payload: never) => void>>();
  readonly #pending = new Map<string, Pending>();
  #state: ConnectionState = { is: "closed" };
  #socket: SocketLike | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Begins the ids of requests, so that those of two clients can be told apart in a log. */
  readonly #name = Math.random().toString(36).slice(2, 8);
  #lastId = 0;
  #lastSeq = 0;
  #attempt = 0;
  #wasConnected = false;
  /** Counts connections and closings, so that what comes late from an earlier one is nobody's. */
  #epoch = 0;

  /** A client of the host at `url`, such as `ws://localhost:18790/ws`. It does nothing before `connect`. */
  constructor(url: string, options: ClientOptions = {}) {
    this.#url = url;
    this.#options = options;
  }

  /** The state of the connection. */
  get state(): ConnectionState {
    return this.#state;
  }

  /**
   * Connects, and stays connected until `close`. Resolves with the first welcome; rejects where the host does not let this
   * client in, or `signal` says so, or it is closed before.
   */
  async connect(signal?: AbortSignal): Promise<Welcome> {
    signal?.throwIfAborted();
    if (this.#state.is === "connected") {
      return this.#state.welcome;
    }
    return await new Promise<Welcome>((resolve, reject) => {
      const done = (): void => {
        stop();
        signal?.removeEventListener("abort", aborted);
      };
      const stop = this.on("state", (state) => {
        if (state.is === "connected") {
          done();
          resolve(state.welcome);
        } else if (state.is === "closed") {
          done();
          reject(state.error ?? new ConnectionError("the client was closed", false));
        }
      });
      const aborted = (): void => {
        done();
        this.close();
        reject(signal?.reason as Error);
      };
      signal?.addEventListener("abort", aborted);
      if (this.#state.is === "closed") {
        this.#attempt = 0;
        this.#wasConnected = false;
        void this.#open();
      }
    });
  }

  /**
   * Asks for something. Rejects with a `RequestError` where the host refuses, and with a `ConnectionError` where the
   * connection is lost or not there. `signal` ends the waiting, not what was asked for; `chat.abort` stops a run.
   */
  request<Name extends Method>(
    method: Name,
    params: Methods[Name]["params"],
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<Methods[Name]["payload"]> {
    if (this.#state.is !== "connected") {
      return Promise.reject(new ConnectionError(`${method} was not sent: there is no connection`, false));
    }
    return this.#send(method, params, options.signal) as Promise<Methods[Name]["payload"]>;
  }

  /**
   * Says something in a conversation, and waits for the answer. `signal` stops the run that works on it, too.
   */
  async chat(
    params: Methods["chat.send"]["params"] & { readonly sessionKey: string },
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<Methods["chat.send"]["payload"]> {
    const { signal } = options;
    const { sessionKey } = params;
    const aborted = (): void => {
      // Where the connection is lost there is nobody to tell, and whoever waits knows it.
      this.request("chat.abort", { sessionKey }).catch(() => undefined);
    };
    const answer = this.request("chat.send", params, options);
    signal?.addEventListener("abort", aborted);
    try {
      return await answer;
    } finally {
      signal?.removeEventListener("abort", aborted);
    }
  }

  /** Calls `listener` for each event `name`; what is given back ends that. */
  on<Name extends keyof Told>(name: Name, listener: (payload: Told[Name]) => void): () => void {
    const all = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, all);
    all.add(listener as (payload: never) => void);
    return () => void all.delete(listener as (payload: never) => void);
  }

  /** Closes the connection for good. Requests under way are rejected. */
  close(): void {
    this.#end(undefined);
  }

  async #open(): Promise<void> {
    const epoch = ++this.#epoch;
    const isOld = (): boolean => epoch !== this.#epoch;
    this.#attempt += 1;
    this.#become({ is: "connecting", attempt: this.#attempt });
    try {
      const { credentials } = this.#options;
      const params = typeof credentials === "function" ? await credentials() : (credentials ?? {});
      if (!isOld()) {
        this.#dial(isOld, { protocolVersion: PROTOCOL, ...params });
      }
    } catch (error) {
      if (!isOld()) {
        this.#lost(error instanceof Error ? error : new Error(String(error)), undefined);
      }
    }
  }

  #dial(isOld: () => boolean, params: Methods["connect"]["params"]): void {
    const Socket = this.#options.WebSocket ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket;
    if (Socket === undefined) {
      this.#end(new Error("there is no WebSocket here: give one as option `WebSocket`, such as that of the package `ws`"));
      return;
    }
    const socket = new Socket(this.#url);
    this.#socket = socket;
    this.#lastSeq = 0;
    const limit = this.#options.connectTimeoutMs ?? 10_000;
    this.#timer = setTimeout(() => {
      this.#lost(new ConnectionError(`the host did not answer within ${limit} ms`, false), undefined);
    }, limit);
    socket.onopen = (): void => {
      if (!isOld()) {
        this.#greet(isOld, params);
      }
    };
    socket.onmessage = ((event: { readonly data: unknown }): void => {
      if (!isOld()) {
        this.#take(String(event.data));
      }
    }) as SocketLike["onmessage"];
    socket.onclose = ((event: { readonly code?: number; readonly reason?: unknown }): void => {
      if (!isOld()) {
        const why = String(event.reason ?? "") || "the connection was lost";
        this.#lost(new ConnectionError(why, false, event.code), event.code);
      }
    }) as SocketLike["onclose"];
    // What went wrong is said by the closing that follows.
    socket.onerror = (): void => undefined;
  }

  #greet(isOld: () => boolean, params: Methods["connect"]["params"]): void {
    this.#send("connect", params, undefined).then(
      (payload) => {
        if (isOld()) {
          return;
        }
        clearTimeout(this.#timer);
        const welcome = payload as Welcome;
        const isAnother = this.#wasConnected;
        this.#wasConnected = true;
        this.#attempt = 0;
        this.#become({ is: "connected", welcome });
        if (isAnother) {
          this.#tell("reconnected", welcome);
        }
      },
      (error: Error) => {
        if (isOld()) {
          return;
        }
        if (error instanceof RequestError && FINAL.includes(error.code)) {
          this.#end(error);
        } else {
          this.#lost(error, undefined);
        }
      },
    );
  }

  #send(method: string, params: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      this.#lastId += 1;
      const id = `${this.#name}-${this.#lastId}`;
      const done = (): void => {
        this.#pending.delete(id);
        signal?.removeEventListener("abort", aborted);
      };
      const aborted = (): void => {
        done();
        reject(signal?.reason as Error);
      };
      signal?.addEventListener("abort", aborted);
      this.#pending.set(id, {
        method,
        resolve: (payload) => {
          done();
          resolve(payload);
        },
        reject: (error) => {
          done();
          reject(error);
        },
      });
      this.#socket?.send(JSON.stringify({ type: "req", id, method, params }));
    });
  }

  #take(text: string): void {
    let frame: { readonly [member: string]: unknown };
    try {
      frame = JSON.parse(text) as typeof frame;
    } catch {
      this.#lost(new ConnectionError("the host sent something that is not JSON", false), undefined);
      return;
    }
    const { type, id, seq } = frame as { type?: unknown; id?: unknown; seq?: unknown };
    if (type === "res") {
      const pending = this.#pending.get(String(id));
      if (frame["ok"] === true) {
        pending?.resolve(frame["payload"]);
      } else {
        pending?.reject(new RequestError(frame["error"] as ApiError, String(id)));
      }
      return;
    }
    if (typeof seq === "number") {
      if (seq > this.#lastSeq + 1) {
        this.#tell("gap", { from: this.#lastSeq + 1, to: seq - 1 });
      }
      this.#lastSeq = seq;
    }
    if (type === "event") {
      this.#tell(String(frame["event"]) as keyof Told, frame["payload"] as never);
    } else if (type === "hook") {
      this.#tell("hook", frame as unknown as HookFrame);
    }
  }

  /** The connection is gone; another one is made after a while. */
  #lost(error: Error, closeCode: number | undefined): void {
    this.#hangUp(closeCode);
    const { firstWaitMs = 250, longestWaitMs = 15_000, random = Math.random } = this.#options;
    const told = error instanceof RequestError ? error.retryAfterMs : undefined;
    // A connection that was there begins with the first wait again.
    const wait = waitBefore(Math.max(this.#attempt, 1), firstWaitMs, longestWaitMs, random());
    const retryInMs = Math.max(wait, told ?? 0);
    this.#timer = setTimeout(() => void this.#open(), retryInMs);
    this.#become({ is: "waiting", retryInMs, error });
  }

  #end(error: Error | undefined): void {
    const was = this.#state.is;
    this.#hangUp(undefined);
    if (was !== "closed") {
      this.#become(error === undefined ? { is: "closed" } : { is: "closed", error });
    }
  }

  #hangUp(closeCode: number | undefined): void {
    this.#epoch += 1;
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = undefined;
    for (const { method, reject } of [...this.#pending.values()]) {
      const why = `the connection was lost before ${method} was answered: it may or may not have been carried out`;
      reject(new ConnectionError(why, true, closeCode));
    }
    socket?.close();
  }

  #become(state: ConnectionState): void {
    this.#state = state;
    this.#tell("state", state);
  }

  #tell<Name extends keyof Told>(name: Name, payload: Told[Name]): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      try {
        (listener as (payload: Told[Name]) => void)(payload);
      } catch (error) {
        // What a listener does wrong is its own: neither the connection nor the others suffer.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
