import { useSearch } from "@tanstack/react-router";

import { useWire } from "../wire/use-wire.ts";

/** What an address says that is about every tenant. */
export const EVERY_TENANT = "all";

/** Whether the address is about every tenant, for those who may see them. */
export function useEverywhere(): boolean {
  const { me } = useWire();
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  return search["tenant"] === EVERY_TENANT && me.is_owner;
}

/** What a link keeps of the address that is about every tenant. */
export const ofTenants = (everywhere: boolean): { readonly tenant?: string } => (everywhere ? { tenant: EVERY_TENANT } : {});
