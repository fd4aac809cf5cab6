import { LOST, WireError } from "./error.ts";
import type { Method, Params, Payload, Welcome } from "./types.ts";

export type ConnectionState = "connecting" | "open" | "lost" | "refused";

/** What is said of oneself in `connect`. */
export type Claim = Readonly<Record<string, string>>;

interface Waiting {
  readonly resolve: (payload: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface Frame {
  readonly type: string;
  readonly id?: string;
  readonly ok?: boolean;
  readonly payload?: unknown;
  readonly error?: { readonly code: string; readonly message: string; readonly retryAfterMs?: number };
  readonly event?: string;
  readonly seq?: number;
}

/** How long to wait before the next attempt, and the longest such wait. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;

/** One socket to the gateway that comes back by itself. */
export class Connection {
  state: ConnectionState = "connecting";
  welcome: Welcome | undefined;
  /** Why it was refused. */
  refusal: WireError | undefined;
  private socket: WebSocket | undefined;
  private waiting = new Map<string, Waiting>();
  private listeners = new Set<(event: string, payload: unknown) => void>();
  private watchers = new Set<() => void>();
  private last = 0;
  private seq = 0;
  private wait = FIRST_WAIT_MS;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private closed = false;

  constructor(
    private readonly url: string,
    private readonly claim: () => Claim,
  ) {
    this.open();
  }

  /** Asks for something, and waits for the answer. */
  call<M extends Method>(method: M, params: Params<M>): Promise<Payload<M>> {
    if (this.state !== "open") {
      return Promise.reject(new WireError(LOST, "the connection to the server is lost"));
    }
    return this.send(method, params) as Promise<Payload<M>>;
  }

  /** Hears every event and every text of a skill; `gap` where some were lost, and `back` after the connection was. */
  listen(listener: (event: string, payload: unknown) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Hears of changes of `state`. */
  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  private open(): void {
    const socket = new WebSocket(this.url);
    this.socket = socket;
    socket.onopen = () => {
      this.send("connect", this.claim()).then(
        (welcome) => this.opened(welcome as Welcome),
        (error: unknown) => this.refused(error),
      );
    };
    socket.onmessage = (message) => this.take(JSON.parse(String(message.data)) as Frame);
    socket.onclose = () => this.lost();
  }

  private opened(welcome: Welcome): void {
    const back = this.welcome !== undefined;
    this.welcome = welcome;
    this.wait = FIRST_WAIT_MS;
    this.become("open");
    if (back) {
      this.tell("back", undefined);
    }
  }

  private refused(error: unknown): void {
    if (error instanceof WireError && error.code !== LOST) {
      this.refusal = error;
      this.closed = true;
      this.socket?.close();
      this.become("refused");
    }
  }

  private lost(): void {
    for (const { reject } of this.waiting.values()) {
      reject(new WireError(LOST, "the connection to the server is lost"));
    }
    this.waiting.clear();
    this.seq = 0;
    if (this.closed) {
      return;
    }
    this.become("lost");
    this.timer = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT_MS);
  }

  private send(method: string, params: unknown): Promise<unknown> {
    this.last += 1;
    const id = String(this.last);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.socket?.send(JSON.stringify({ type: "req", id, method, params }));
    });
  }

  private take(frame: Frame): void {
    if (frame.type === "res") {
      const waiting = this.waiting.get(frame.id ?? "");
      this.waiting.delete(frame.id ?? "");
      if (frame.ok === true) {
        waiting?.resolve(frame.payload);
      } else {
        const { code = "INTERNAL", message = "", retryAfterMs } = frame.error ?? {};
        waiting?.reject(new WireError(code, message, retryAfterMs));
      }
      return;
    }
    if (frame.seq !== undefined) {
      if (this.seq !== 0 && frame.seq !== this.seq + 1) {
        this.tell("gap", undefined);
      }
      this.seq = frame.seq;
    }
    if (frame.type === "hook") {
      this.tell("hook", frame);
    } else if (frame.event !== undefined) {
      this.tell(frame.event, frame.payload);
    }
  }

  private tell(event: string, payload: unknown): void {
    for (const listener of this.listeners) {
      listener(event, payload);
    }
  }

  private become(state: ConnectionState): void {
    this.state = state;
    for (const watcher of this.watchers) {
      watcher();
    }
  }
}
