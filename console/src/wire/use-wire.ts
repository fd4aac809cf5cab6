import { createContext, useContext, useEffect, useRef, useSyncExternalStore } from "react";

import type { Connection, ConnectionState } from "./connection.ts";
import type { Role, Welcome } from "./types.ts";

export interface Wire {
  readonly connection: Connection;
  readonly me: Welcome;
  readonly signOut: () => void;
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

const RANK: readonly Role[] = ["viewer", "operator", "admin", "owner"];

/** Whether one has at least this role. */
export function useMay(least: Role): boolean {
  return RANK.indexOf(useWire().me.role) >= RANK.indexOf(least);
}

/** Hears events for as long as the component is there. */
export function useEvents(listener: (event: string, payload: unknown) => void): void {
  const { connection } = useWire();
  const latest = useRef(listener);
  useEffect(() => {
    latest.current = listener;
  });
  useEffect(() => connection.listen((event, payload) => latest.current(event, payload)), [connection]);
}

export function useConnectionState(connection: Connection): ConnectionState {
  return useSyncExternalStore(
    (watcher) => connection.watch(watcher),
    () => connection.state,
  );
}
