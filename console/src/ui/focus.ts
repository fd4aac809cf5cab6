/** Where the focus goes once something closes that had it: to what opened it, or to the page if that is gone. Pure. */
export function focusAfter<One extends { readonly isConnected: boolean }>(opener: One | null, page: One | null): One | null {
  return opener === null || opener.isConnected ? opener : page;
}
