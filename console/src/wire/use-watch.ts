import { useEffect } from "react";

import type { PintleClient } from "./client.ts";
import { useEvent, useWire } from "./use-wire.ts";

/** How many parts of the page watch over one connection: the server knows one wish of each. */
const watchers = new WeakMap<PintleClient, number>();

function say(connection: PintleClient, on: boolean): void {
  // Without a connection there is nothing to hear; it is said again once there is one.
  connection.request("hooks.watch", { on }).catch(() => undefined);
}

/** Hears of every execution as it comes, for as long as the component is there. */
export function useWatch(): void {
  const { connection } = useWire();
  useEffect(() => {
    const before = watchers.get(connection) ?? 0;
    watchers.set(connection, before + 1);
    if (before === 0) {
      say(connection, true);
    }
    return () => {
      const left = (watchers.get(connection) ?? 1) - 1;
      watchers.set(connection, left);
      if (left === 0) {
        say(connection, false);
      }
    };
  }, [connection]);
  useEvent("reconnected", () => say(connection, true));
}
