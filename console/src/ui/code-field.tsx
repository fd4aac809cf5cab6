import { lazy, Suspense } from "react";

import { Area } from "./field.tsx";

const CodeEditor = lazy(() => import("./code-editor.tsx"));

/** A field for code: a plain one until the editor is there. */
export function CodeField(props: { value: string; onChange: (value: string) => void; language: "json" | "javascript"; label: string; id?: string }) {
  const { value, onChange, label, id } = props;
  return (
    <Suspense fallback={<Area id={id} rows={5} className="font-mono" aria-label={label} value={value} onChange={(event) => onChange(event.target.value)} />}>
      <CodeEditor {...props} />
    </Suspense>
  );
}
