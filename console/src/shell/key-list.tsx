import { Dialog } from "../ui/dialog.tsx";
import { useWords } from "../words/use-words.ts";

/** The keys, and what each does. */
export function KeyList({ open, onClose }: { open: boolean; onClose: () => void }) {
  const words = useWords().keys;
  return (
    <Dialog open={open} onClose={onClose} title={words.title} about={words.about}>
      <dl className="mt-2 grid grid-cols-[96px_1fr] gap-y-1">
        {words.list.map(([key, does]) => (
          <div key={key} className="contents">
            <dt>
              <kbd className="rounded border border-line bg-raised px-1">{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
