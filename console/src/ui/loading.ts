import { useIsConnected } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";

/** What stands where nothing was read yet: that it comes, or that there is no connection over which it could. */
export function useLoading(loading: string): string {
  const { away } = useWords().list;
  return useIsConnected() ? loading : away;
}
