/** Whether what the program of a hook wrote is offered, and to whom. Pure. */

import type { TurnExecution } from "../wire/types.ts";

/** Those who may read the details of faults, where something was written at all. */
export function offersOutput({ stdoutBytes, stderrBytes }: Pick<TurnExecution, "stdoutBytes" | "stderrBytes">, mayRead: boolean): boolean {
  return mayRead && (stdoutBytes ?? 0) + (stderrBytes ?? 0) > 0;
}
