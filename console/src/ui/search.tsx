import { NARROW } from "./narrow.ts";
import { Input } from "./field.tsx";

/** The key that leads to a search stands behind what it looks in: where there are no keys, it is left out. */
const withoutKey = (label: string): string => label.replace(/\s+\/$/, "");

/** Looks for a text in a list. `/` leads to it, and Esc empties it and leads away. */
export function Search({ label, value, className = "max-w-48 max-sm:max-w-none", choose }: { label: string; value: string; className?: string; choose: (text: string) => void }) {
  return (
    <Input
      data-search
      type="search"
      className={className}
      aria-label={label}
      placeholder={matchMedia(NARROW).matches ? withoutKey(label) : label}
      value={value}
      onChange={(event) => choose(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.preventDefault();
          choose("");
          event.currentTarget.blur();
        }
      }}
    />
  );
}
