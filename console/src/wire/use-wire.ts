import { createContext, useContext, useEffect, useRef, useSyncExternalStore } from "react";

import type { ConnectionState, PintleClient, Told, Welcome } from "./client.ts";
import { mayAs } from "./may.ts";
import { hasSession } from "./session.ts";
import type { CallerRole, KeyScope } from "./types.ts";

export interface Wire {
  readonly connection: PintleClient;
  readonly me: Welcome;
  readonly signOut: () => void;
  /** Goes to another tenant, by its slug or id: for owners. */
  readonly goTo: (tenant: string) => Promise<void>;
}

export const WireContext = createContext<Wire | undefined>(undefined);

/** The connection, and who one is. */
export function useWire(): Wire {
  const wire = useContext(WireContext);
  if (wire === undefined) {
    throw new Error("there is a connection wherever pages are shown");
  }
  return wire;
}

/** Whether one has at least this role, and with `scope` also that scope: a key may have fewer than its owner's role. */
export function useMay(least: CallerRole, scope?: KeyScope): boolean {
  return mayAs(useWire().me, least, scope);
}

/** Whether one may try hooks, which nobody may who did not sign in. */
export function useMayTry(): boolean {
  return useMay("operator", "operator.write") && hasSession();
}

/** Whether something is another tenant's: owners see it here, and act on it there. */
export function useIsElsewhere(tenantId: string | undefined): boolean {
  const { me } = useWire();
  return tenantId !== undefined && tenantId !== me.tenant_id;
}

/** Hears an event for as long as the component is there. */
export function useEvent<Name extends keyof Told>(name: Name, listener: (payload: Told[Name]) => void): void {
  const { connection } = useWire();
  const latest = useRef(listener);
  useEffect(() => {
    latest.current = listener;
  });
  useEffect(() => connection.on(name, (payload) => latest.current(payload)), [connection, name]);
}

/** Whether there is a connection now; outside the pages there is none. */
export function useIsConnected(): boolean {
  const connection = useContext(WireContext)?.connection;
  return useSyncExternalStore(
    (changed) => connection?.on("state", changed) ?? (() => undefined),
    () => connection?.state.is === "connected",
    () => connection?.state.is === "connected",
  );
}

export function useConnectionState(connection: PintleClient): ConnectionState {
  return useSyncExternalStore(
    (changed) => connection.on("state", changed),
    () => connection.state,
  );
}

/** Whether there was a connection, or one could not be made: it is tried again. */
export const isLost = (state: ConnectionState): boolean => state.is === "waiting" || (state.is === "connecting" && state.attempt > 1);
