/** The addresses that a link may lead to. */
export const SAFE = /^(https?:|mailto:)/i;

/** How much of an address is shown beside a link, in characters. */
const MOST = 60;

/** Whether the text of a link is the address that it leads to, so that nothing has to stand beside it. Pure. */
export const isItself = (text: string, href: string): boolean => {
  const bare = (address: string): string => address.trim().replace(/^mailto:/i, "").replace(/\/$/, "");
  return bare(text) === bare(href);
};

/** Where a link leads, as it is shown beside its text, which is somebody else's: always the whole name of the host. Pure. */
export function targetOf(href: string): string {
  if (href.length <= MOST) {
    return href;
  }
  try {
    const { protocol, host } = new URL(href);
    return `${host === "" ? protocol : `${protocol}//${host}/`}…`;
  } catch {
    return `${href.slice(0, MOST)}…`;
  }
}
