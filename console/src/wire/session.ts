import { ConnectionError, RequestError } from "./client.ts";
import type { ErrorCode, Params } from "./types.ts";

/** Where the key of the session is kept: only pages of this origin read it, unlike its cookie, which all ports share. */
const KEY = "pintle.session";

interface Answer {
  readonly sessionKey?: string;
  readonly error?: { readonly code?: string; readonly message?: string };
}

const kept = (): string | null => localStorage.getItem(KEY);

/** Whether there is a session to go on with. */
export const hasSession = (): boolean => kept() !== null;

/** What is said in `connect`: the key of the session, or nothing, which is enough on one's own machine. */
export function claim(): Params<"connect"> {
  const key = kept();
  return key === null ? {} : { consoleKey: key };
}

/** What a request over HTTP carries: the key of the session, where there is one. */
export function keyHeader(): Readonly<Record<string, string>> {
  const key = kept();
  return key === null ? {} : { "x-pintle": key };
}

/** What a refusal over HTTP says. */
export async function refusalOf(response: Response): Promise<RequestError> {
  const answer = (await response.json().catch(() => ({}))) as Answer;
  return new RequestError({ code: (answer.error?.code ?? "internal").toUpperCase() as ErrorCode, message: answer.error?.message ?? `HTTP ${response.status}` }, response.headers.get("x-request-id") ?? undefined);
}

/** What the server says as it closes the connection of somebody who may no longer come in. */
const REVOKED = "access was revoked";

/** Whether the server took away the connection: a key was revoked or has expired, or somebody signed out elsewhere. Pure. */
export const isTakenAway = (error: unknown): boolean => error instanceof ConnectionError && error.message === REVOKED;

/** A session ended that somebody had; what they typed may still be here. */
export class SessionEnded extends Error {
  constructor(
    readonly hasDrafts: boolean,
    /** Whether the server ended it while pages were open. */
    readonly wasTaken: boolean,
  ) {
    super("the session ended");
  }
}

/** Forgets the session here: the server ended it. */
export function forget(): void {
  localStorage.removeItem(KEY);
}

async function post(path: string, body: object): Promise<Answer> {
  const response = await fetch(path, { method: "POST", headers: { "content-type": "application/json", ...keyHeader() }, body: JSON.stringify(body) });
  if (!response.ok) {
    throw await refusalOf(response);
  }
  return (await response.json().catch(() => ({}))) as Answer;
}

async function begin(path: string, body: object): Promise<void> {
  const { sessionKey } = await post(path, body);
  if (sessionKey !== undefined) {
    localStorage.setItem(KEY, sessionKey);
  }
}

/** Signs in with the gateway token or an API key; empty texts are like none. */
export const signIn = (token: string, user: string, tenant: string): Promise<void> =>
  begin("/auth/sign-in", { token, ...(user === "" ? {} : { userId: user }), ...(tenant === "" ? {} : { tenant }) });

/** Signs in with the code of a link, which counts once. */
export const exchange = (code: string): Promise<void> => begin("/auth/exchange", { code });

/** Ends the session, and begins one in another tenant: for owners. */
export const switchTenant = (tenant: string): Promise<void> => begin("/auth/switch", { tenant });

/** Ends the session on the server and here. */
export async function signOut(): Promise<void> {
  if (hasSession()) {
    // What has ended already needs no end.
    await post("/auth/sign-out", {}).catch(() => undefined);
  }
  forget();
}

/** The code of a link that leads here. It does not stay in the address. */
export function takeCode(): string | undefined {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) {
    history.replaceState(history.state, "", location.pathname + location.search);
  }
  return code ?? undefined;
}
