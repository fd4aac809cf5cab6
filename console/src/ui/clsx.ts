/** The names of classes that apply. */
export function clsx(...names: readonly (string | false | undefined)[]): string {
  return names.filter(Boolean).join(" ");
}
