import type { ButtonHTMLAttributes, Ref } from "react";

import { clsx } from "./clsx.ts";

type Look = "plain" | "primary" | "danger" | "quiet";

const LOOKS: Record<Look, string> = {
  plain: "border border-edge bg-surface hover:bg-raised",
  primary: "border border-accent bg-accent text-on-accent",
  danger: "border border-edge bg-surface text-block hover:bg-block-bg",
  quiet: "text-accent underline px-0!",
};

export const buttonClass = (look: Look): string =>
  clsx(
    "inline-flex items-center justify-center whitespace-nowrap rounded px-3 py-1 font-medium max-sm:min-h-11 max-sm:px-4 disabled:opacity-60 disabled:cursor-not-allowed",
    LOOKS[look],
  );

export function Button({
  look = "plain",
  className,
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { look?: Look; ref?: Ref<HTMLButtonElement> }) {
  return <button type="button" className={clsx(buttonClass(look), className)} {...rest} />;
}
