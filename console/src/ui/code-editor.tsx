import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { defaultHighlightStyle, syntaxHighlighting, bracketMatching } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";

const LOOK = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "12px" },
  ".cm-content": { fontFamily: "var(--font-mono)", caretColor: "var(--text)", minHeight: "96px" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--muted)", border: "none" },
  "&.cm-focused": { outline: "none" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  // One colour for all of it is readable on both grounds.
  ".cm-line span": { color: "inherit" },
});

/** An editor for a script or for JSON. It sits in a shadow root, where it may use constructed style sheets. */
export default function CodeEditor({ value, onChange, language, label, id }: { value: string; onChange: (value: string) => void; language: "json" | "javascript"; label: string; id?: string }) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const changed = useRef(onChange);
  const first = useRef(value);
  useEffect(() => {
    changed.current = onChange;
  });
  useEffect(() => {
    const host = place.current;
    if (host === null) {
      return;
    }
    const root = host.shadowRoot ?? host.attachShadow({ mode: "open", delegatesFocus: true });
    const state = EditorState.create({
      doc: first.current,
      extensions: [
        lineNumbers(),
        history(),
        bracketMatching(),
        // Tab goes on to the next field: nobody is caught in here.
        keymap.of([...defaultKeymap, ...historyKeymap]),
        language === "json" ? json() : javascript(),
        syntaxHighlighting(defaultHighlightStyle),
        EditorView.lineWrapping,
        LOOK,
        EditorView.contentAttributes.of({ "aria-label": label }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) {
            changed.current(update.state.doc.toString());
          }
        }),
      ],
    });
    const created = new EditorView({ state, root, parent: root });
    view.current = created;
    return () => created.destroy();
  }, [language, label]);
  useEffect(() => {
    const current = view.current;
    if (current !== undefined && current.state.doc.toString() !== value) {
      current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: value } });
    }
  }, [value]);
  return <div ref={place} id={id} className="overflow-hidden rounded border border-edge focus-within:outline-2 focus-within:outline-offset-2 focus-within:outline-accent" />;
}
