import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { Button } from "../ui/button.tsx";
import { save } from "../ui/download.ts";
import { Problem } from "../ui/problem.tsx";
import { useWords } from "../words/use-words.ts";
import { type FoundFile, look, sizeOf, whole } from "./media.ts";

/** The files of a message. */
export function Files({ references }: { references: readonly string[] }) {
  const words = useWords().chat.files;
  return (
    <ul aria-label={words.title} className="mt-1 flex flex-wrap gap-2">
      {references.map((reference) => (
        <li key={reference} className="max-w-full">
          <FileView reference={reference} />
        </li>
      ))}
    </ul>
  );
}

const found = (reference: string) => ({ queryKey: ["media", reference], queryFn: () => look(reference), staleTime: Infinity, retry: false });

/** What is known of a file, once it is. */
export const useFile = (reference: string | undefined): FoundFile | undefined => useQuery({ ...found(reference ?? ""), enabled: reference !== undefined }).data;

/** One file: a picture is shown, and each can be saved. */
function FileView({ reference }: { reference: string }) {
  const words = useWords().chat.files;
  const asked = useQuery(found(reference));
  const [error, setError] = useState<unknown>();
  if (asked.data === undefined) {
    return <span className="text-small text-muted">{asked.error === null ? words.loading : words.gone}</span>;
  }
  const { name, bytes, picture } = asked.data;
  const shown = name === "" ? words.noName : name;
  return (
    <figure className="max-w-full rounded border border-line bg-surface p-2">
      {picture !== undefined && <Picture blob={picture} label={words.picture(shown)} />}
      <figcaption className="flex flex-wrap items-center gap-x-2 text-small">
        <span className="wrap-anywhere">{shown}</span>
        <span className="text-muted">{sizeOf(bytes)}</span>
        <Button look="quiet" aria-label={words.saveNamed(shown)} onClick={() => void whole(reference).then((blob) => save(shown, blob), setError)}>
          {words.save}
        </Button>
      </figcaption>
      {error !== undefined && <Problem error={error} />}
    </figure>
  );
}

/** The largest side of a picture in a conversation, in pixels. */
const SIDE = 320;

/** A picture, drawn: so the policy of the page needs no other source of pictures than this origin. */
function Picture({ blob, label }: { blob: Blob; label: string }) {
  const words = useWords().chat.files;
  const place = useRef<HTMLCanvasElement>(null);
  const [bad, setBad] = useState(false);
  useEffect(() => {
    let gone = false;
    createImageBitmap(blob).then(
      (bitmap) => {
        const canvas = place.current;
        if (canvas !== null && !gone) {
          const scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
          canvas.width = Math.max(1, Math.round(bitmap.width * scale));
          canvas.height = Math.max(1, Math.round(bitmap.height * scale));
          canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
        }
        bitmap.close();
      },
      () => setBad(!gone),
    );
    return () => {
      gone = true;
    };
  }, [blob]);
  return bad ? <p className="text-small text-muted">{words.noPicture}</p> : <canvas ref={place} role="img" aria-label={label} className="mb-1 h-auto max-w-full" width={1} height={1} />;
}
