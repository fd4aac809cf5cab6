/** Hands a file to the browser. */
export function save(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** The same for JSON. */
export const download = (name: string, text: string): void => save(name, new Blob([text], { type: "application/json" }));
