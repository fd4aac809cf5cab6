export type Scheme = "auto" | "light" | "dark";

const SCHEME = "pintle.scheme";

export function readScheme(): Scheme {
  const kept = localStorage.getItem(SCHEME);
  return kept === "light" || kept === "dark" ? kept : "auto";
}

export function keepScheme(scheme: Scheme): void {
  localStorage.setItem(SCHEME, scheme);
}

/** Shows everything in `scheme`; the system's where it is `auto`. */
export function show(scheme: Scheme): void {
  const dark = scheme === "dark" || (scheme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}
