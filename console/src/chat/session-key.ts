/** The names of conversations: as one is shown one's own, and as they are kept, with the user in them. Pure. */

const OWN = "direct";
const PLAIN = /[A-Za-z0-9\-_.@+]/;

/** The name of a user as a part of a key, as the server writes it. */
export function escaped(user: string): string {
  const all = [...new TextEncoder().encode(user)]
    .map((byte) => {
      const sign = String.fromCharCode(byte);
      return byte < 128 && PLAIN.test(sign) ? sign : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    })
    .join("");
  return all === OWN ? `%64${OWN.slice(1)}` : all;
}

interface Parts {
  readonly agent: string;
  readonly channel: string;
  readonly user: string;
  readonly conversation: string;
}

export function parts(key: string): Parts | undefined {
  const [head, agent, channel, user, ...rest] = key.split(":");
  if (head !== "agent" || agent === undefined || channel === undefined || user === undefined || rest.length === 0) {
    return undefined;
  }
  return { agent, channel, user, conversation: rest.join(":") };
}

const join = ({ agent, channel, user, conversation }: Parts): string => `agent:${agent}:${channel}:${user}:${conversation}`;

/** A key as its own user is shown it. */
export function shownKey(key: string, me: string): string {
  const found = parts(key);
  return found === undefined || found.user !== escaped(me) ? key : join({ ...found, user: OWN });
}

/** A key as it is kept. */
export function keptKey(key: string, me: string): string {
  const found = parts(key);
  return found === undefined || found.user !== OWN ? key : join({ ...found, user: escaped(me) });
}

/** Whether the conversation is another user's: then one only reads it. */
export function isOthers(key: string, me: string): boolean {
  const found = parts(key);
  return found !== undefined && found.user !== OWN && found.user !== escaped(me);
}

/** A new conversation with an agent. */
export function newKey(agent: string, random: string): string {
  return `agent:${agent}:ws:${OWN}:${random}`;
}
