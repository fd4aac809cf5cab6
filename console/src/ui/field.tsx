import { type InputHTMLAttributes, type ReactNode, type Ref, type SelectHTMLAttributes, type TextareaHTMLAttributes, useId } from "react";

import { clsx } from "./clsx.ts";

const BOX = "min-h-7.5 w-full rounded border border-edge bg-surface px-2 py-1 text-text max-sm:min-h-11 disabled:opacity-60 aria-invalid:border-block";

/** One of several filters beside each other: on a telephone two share a line. */
export const FILTER = "w-auto! max-w-40 max-sm:max-w-none max-sm:w-[calc(50%-4px)]!";

interface About {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": true | undefined;
}

/** A label, what it is a label of, and what is to be known about it. */
export function Field({
  label,
  hint,
  error,
  className,
  children,
}: {
  label: ReactNode;
  hint?: ReactNode;
  error?: string | undefined;
  className?: string;
  children: (about: About) => ReactNode;
}) {
  const id = useId();
  const described = hint !== undefined || error !== undefined;
  return (
    <div className={clsx("min-w-0", className)}>
      {/* An editor is no element that a label can be for; its host hands the focus on. */}
      <label htmlFor={id} className="mb-1 block font-medium" onClick={() => document.getElementById(id)?.focus()}>
        {label}
      </label>
      {children({ id, "aria-describedby": described ? `${id}-about` : undefined, "aria-invalid": error !== undefined || undefined })}
      {described && (
        <p key={error === undefined ? "hint" : "error"} id={`${id}-about`} role={error === undefined ? undefined : "alert"} className={clsx("mt-1 text-small", error === undefined ? "text-muted" : "text-block")}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}

export function Input({ className, ...rest }: InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }) {
  return <input className={clsx(BOX, className)} autoComplete="off" spellCheck={false} {...rest} />;
}

export function Area({ className, ...rest }: TextareaHTMLAttributes<HTMLTextAreaElement> & { ref?: Ref<HTMLTextAreaElement> }) {
  return <textarea className={clsx(BOX, className)} spellCheck={false} {...rest} />;
}

export function Select({ className, ...rest }: SelectHTMLAttributes<HTMLSelectElement> & { ref?: Ref<HTMLSelectElement> }) {
  return <select className={clsx(BOX, className)} {...rest} />;
}

/** A question that is answered with yes or no. */
export function Check({ label, hint, ...rest }: InputHTMLAttributes<HTMLInputElement> & { label: string; hint?: string; ref?: Ref<HTMLInputElement> }) {
  const id = useId();
  return (
    <div className="flex gap-2">
      <input id={id} type="checkbox" className="mt-1 size-4 shrink-0 accent-accent" aria-describedby={hint === undefined ? undefined : `${id}-about`} {...rest} />
      <div>
        <label htmlFor={id} className="inline-block min-h-6 min-w-6 py-0.5 font-medium">
          {label}
        </label>
        {hint !== undefined && (
          <p id={`${id}-about`} className="text-small text-muted">
            {hint}
          </p>
        )}
      </div>
    </div>
  );
}
