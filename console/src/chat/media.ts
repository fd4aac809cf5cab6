import { keyHeader, refusalOf } from "../wire/session.ts";

/** How a file is named in a conversation. */
export const REFERENCE = "media://";
const TYPES: Readonly<Record<string, string>> = { md: "text/markdown", markdown: "text/markdown", csv: "text/csv", json: "application/json", txt: "text/plain", log: "text/plain" };

/** The types that the server takes, for the dialog that chooses files. */
export const TAKEN = "application/json,application/pdf,audio/*,image/avif,image/gif,image/jpeg,image/png,image/webp,text/csv,text/markdown,text/plain,video/mp4,video/ogg,video/webm,.md,.log";

/** A file that is kept on the server. */
export interface KeptFile {
  readonly id: string;
  readonly name: string;
  readonly bytes: number;
}

/** What a file is: browsers do not know some texts. Pure. */
export function typeOf(name: string, type: string): string {
  const ending = name.split(".").pop()?.toLowerCase() ?? "";
  return type === "" || type === "text/x-log" ? (TYPES[ending] ?? type) : type;
}

/** A name as a header can carry it. Pure. */
export const plainName = (name: string): string => name.replaceAll(/[^\x20-\x7e]|["\\]/g, "_");

/** Hands a file over. */
export async function hand(file: File, signal: AbortSignal): Promise<KeptFile> {
  const response = await fetch("/v1/media", {
    method: "POST",
    headers: { "content-type": typeOf(file.name, file.type) || "application/octet-stream", "content-disposition": `attachment; filename="${plainName(file.name)}"`, ...keyHeader() },
    body: file,
    signal,
  });
  if (!response.ok) {
    throw await refusalOf(response);
  }
  const { id, size_bytes } = (await response.json()) as { readonly id: string; readonly size_bytes: number };
  return { id, name: file.name, bytes: size_bytes };
}

/** A file as it comes back: pictures whole, of others only what they are. */
export interface FoundFile {
  readonly name: string;
  readonly type: string;
  readonly bytes: number;
  readonly picture: Blob | undefined;
}

/** The name in `attachment; filename="NAME"`. Pure. */
export const nameIn = (disposition: string): string => /filename="([^"]*)"/.exec(disposition)?.[1] ?? "";

async function get(id: string, signal: AbortSignal | null): Promise<Response> {
  const response = await fetch(`/v1/media/${encodeURIComponent(id)}`, { headers: keyHeader(), signal });
  if (!response.ok) {
    throw await refusalOf(response);
  }
  return response;
}

/** Looks at a file of a conversation. */
export async function look(reference: string): Promise<FoundFile> {
  const rest = new AbortController();
  const response = await get(reference.replace(REFERENCE, ""), rest.signal);
  const head = (name: string): string => response.headers.get(name) ?? "";
  const [name, type, bytes] = [nameIn(head("content-disposition")), head("content-type"), Number(head("content-length"))];
  if (type.startsWith("image/")) {
    const picture = await response.blob();
    return { name, type, bytes: picture.size, picture };
  }
  rest.abort();
  return { name, type, bytes, picture: undefined };
}

/** The whole of a file, for somebody who saves it. */
export const whole = async (reference: string): Promise<Blob> => (await get(reference.replace(REFERENCE, ""), null)).blob();

/** A size as people read it. Pure. */
export const sizeOf = (bytes: number): string => (bytes < 1_000 ? `${bytes} B` : bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(bytes < 10_000 ? 1 : 0)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`);
