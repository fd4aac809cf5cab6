import { type PintleClient, RequestError } from "../wire/client.ts";
import type { Hook, HookUpdates } from "../wire/types.ts";

/** Somebody else saved the hook first: as it stands now. */
export class SavedMeanwhile extends Error {
  constructor(readonly theirs: Hook) {
    super(`version ${theirs.version} was saved meanwhile`);
  }
}

/** Saves `updates` over version `over` of a hook. Where another version stands there by now, nothing is saved, and a `SavedMeanwhile` has that one. */
export async function saveOver(connection: Pick<PintleClient, "request">, hookId: string, updates: HookUpdates, over: number): Promise<Hook> {
  const get = async (): Promise<Hook> => (await connection.request("hooks.get", { hookId })).hook;
  if (Object.keys(updates).length > 0) {
    try {
      await connection.request("hooks.update", { hookId, updates, ifVersion: over });
    } catch (refused) {
      // The same code has other causes: the version that stands there tells.
      const now = refused instanceof RequestError && refused.code === "FAILED_PRECONDITION" ? await get().catch(() => undefined) : undefined;
      throw now === undefined || now.version === over ? refused : new SavedMeanwhile(now);
    }
  }
  return get();
}
