import * as Radix from "@radix-ui/react-dialog";
import { type ReactNode, useState } from "react";

import { useWords } from "../words/use-words.ts";
import { Button } from "./button.tsx";
import { clsx } from "./clsx.ts";
import { Field, Input } from "./field.tsx";
import { focusAfter } from "./focus.ts";
import { Problem } from "./problem.tsx";
import { tooManyChars } from "./too-long.ts";

/** What has the focus; the page as a whole does not count. */
const focused = (): HTMLElement | null => (document.activeElement instanceof HTMLElement && document.activeElement !== document.body ? document.activeElement : null);

/** A dialog. Esc closes it, and the focus goes back to where it was. */
export function Dialog({ open, onClose, title, about, wide = false, children }: { open: boolean; onClose: () => void; title: string; about: string; wide?: boolean; children: ReactNode }) {
  // The library knows only openers of its own. When the dialog is there, a field in it may have the focus already.
  const [{ wasOpen, opener }, setOpening] = useState<{ wasOpen: boolean; opener: HTMLElement | null }>({ wasOpen: false, opener: null });
  if (open !== wasOpen) {
    setOpening({ wasOpen: open, opener: open ? focused() : opener });
  }
  return (
    <Radix.Root open={open} onOpenChange={(now) => !now && onClose()}>
      <Radix.Portal>
        {/* The overlay of the library writes style elements, which the policy forbids. */}
        <div className="fixed inset-0 z-10 bg-[rgb(0_0_0/0.4)]" />
        <Radix.Content
          className={clsx("fixed top-[10vh] left-1/2 z-20 flex max-h-[80vh] w-[calc(100vw-32px)] -translate-x-1/2 flex-col overflow-y-auto rounded-md border border-line bg-surface p-4", wide ? "max-w-240" : "max-w-120")}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            focusAfter(opener, document.getElementById("main"))?.focus();
          }}
        >
          <Radix.Title className="text-large font-semibold">{title}</Radix.Title>
          <Radix.Description className="mb-2 text-muted">{about}</Radix.Description>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** The server takes no longer reason. */
const MAX_REASON_CHARS = 255;

/** Asks before something dangerous is done. It stays open when that fails. */
export function Confirm({
  open,
  onClose,
  title,
  about,
  action,
  act,
  ready = true,
  reasonHint,
  reasonMost = MAX_REASON_CHARS,
  wide = false,
  children,
}: {
  open: boolean;
  onClose: () => void;
  title: string;
  about: string;
  action: string;
  /** Does it, for the reason that somebody gave. */
  act: (reason: string) => Promise<unknown>;
  /** Whether everything that it wants is there. */
  ready?: boolean;
  /** It takes a reason, and this says where the reason stands from then on. */
  reasonHint?: string | undefined;
  /** The most characters that it has. */
  reasonMost?: number | undefined;
  /** It shows something that needs room. */
  wide?: boolean;
  children?: ReactNode;
}) {
  const words = useWords();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [reason, setReason] = useState("");
  const long = tooManyChars(reason, reasonMost, words.hooks.reasonLong);
  const lacks = reasonHint !== undefined && (reason.trim() === "" || long !== undefined);
  const can = !busy && ready && !lacks;
  const go = async (): Promise<void> => {
    setBusy(true);
    try {
      await act(reason.trim());
      setError(undefined);
      setReason("");
      onClose();
    } catch (failed) {
      setError(failed);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog open={open} onClose={onClose} title={title} about={about} wide={wide}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (can) {
            void go();
          }
        }}
      >
        {children}
        {reasonHint !== undefined && (
          // What is too long is told, and nothing of it is cut off.
          <Field label={words.hooks.reason} hint={`${reasonHint} ${words.hooks.reasonBounds(reasonMost)}`} error={long}>
            {(about) => <Input {...about} required value={reason} onChange={(event) => setReason(event.target.value)} />}
          </Field>
        )}
        {error !== undefined && <Problem error={error} />}
        <div className="mt-2 flex justify-end gap-2">
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button look="danger" type="submit" disabled={!can}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
