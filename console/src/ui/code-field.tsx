import { lazy, type Ref, Suspense, useRef } from "react";

import type { EditorProps } from "./code-editor.tsx";
import { Area, Field } from "./field.tsx";

const CodeEditor = lazy(() => import("./code-editor.tsx"));

/** A field for code, with its label and what is to be known about it: a plain one until the editor is there, which then has its focus. */
export function CodeField({ hint, error, isWrong = error !== undefined, ...props }: Omit<EditorProps, "id" | "about"> & { hint?: string; error?: string | undefined }) {
  const focused = useRef(false);
  const { value, onChange, language, label, example, ref } = props;
  const about = error ?? hint;
  return (
    <Field label={label} hint={hint} error={error}>
      {({ id, ...described }) => (
        <Suspense
          fallback={
            <Area
              {...described}
              id={id}
              ref={ref as Ref<HTMLTextAreaElement>}
              rows={language === "cel" ? 1 : 5}
              className="font-mono"
              aria-invalid={isWrong || undefined}
              placeholder={example}
              value={value}
              onChange={(event) => onChange(event.target.value)}
              onFocus={() => (focused.current = true)}
              onBlur={() => (focused.current = false)}
            />
          }
        >
          <CodeEditor {...props} id={id} {...(about === undefined ? {} : { about })} isWrong={isWrong} focused={focused} />
        </Suspense>
      )}
    </Field>
  );
}
