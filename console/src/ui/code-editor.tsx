import { autocompletion } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { bracketMatching, defaultHighlightStyle, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, type Extension, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { type Ref, type RefObject, useEffect, useImperativeHandle, useRef } from "react";

import { useWords } from "../words/use-words.ts";
import { complete } from "./cel/complete.ts";
import { type Said, wrongIn } from "./cel/place.ts";
import { parser } from "./cel/tokens.ts";
import { clsx } from "./clsx.ts";

export type Language = "json" | "javascript" | "cel";

export interface Focusable {
  readonly focus: () => void;
}

export interface EditorProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly language: Language;
  readonly label: string;
  readonly id?: string;
  /** What is to be known about it. */
  readonly about?: string;
  /** It cannot be taken as it is. */
  readonly isWrong?: boolean;
  /** What the server says of this value: the place of an error is marked. */
  readonly said?: Said | undefined;
  /** What stands in it while it is empty. */
  readonly example?: string;
  /** For whoever sets the focus to it. */
  readonly ref?: Ref<Focusable>;
}

const LOOK = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "12px" },
  ".cm-content": { fontFamily: "var(--font-mono)", caretColor: "var(--text)", minHeight: "96px" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--muted)", border: "none" },
  "&.cm-focused": { outline: "none" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
});

// One colour for all of it is readable on both grounds.
const PLAIN = EditorView.theme({ ".cm-line span": { color: "inherit" } });

/** A field that begins with one line, and what opens below it. */
const SHORT = EditorView.theme({
  ".cm-content": { minHeight: "28px" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-wrong": { textDecoration: "underline wavy var(--block)", textDecorationSkipInk: "none", backgroundColor: "var(--block-bg)" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--edge)", borderRadius: "4px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--font-mono)", maxWidth: "calc(100vw - 32px)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { minHeight: "24px", lineHeight: "24px", padding: "0 8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { fontStyle: "normal" },
  "@media (max-width: 639px)": {
    ".cm-content": { fontSize: "14px", minHeight: "42px", padding: "10px 0" },
    ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { minHeight: "44px", lineHeight: "44px" },
  },
});

/** The colours of a condition; they are readable on both grounds. */
const COLOURS = HighlightStyle.define([
  { tag: tags.special(tags.variableName), color: "var(--accent)", fontWeight: "600" },
  { tag: tags.function(tags.variableName), color: "var(--accent)" },
  { tag: [tags.keyword, tags.operator], color: "var(--ask)" },
  { tag: [tags.string], color: "var(--allow)" },
  { tag: [tags.number, tags.atom, tags.typeName], color: "var(--fault)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
]);

const MARK = Decoration.mark({ class: "cm-wrong" });
const mark = StateEffect.define<{ readonly from: number; readonly to: number } | null>();

/** The piece that is wrong. It goes along with what is typed around it until the server has spoken again. */
const marked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (before, transaction) => {
    const set = transaction.effects.findLast((effect) => effect.is(mark));
    if (set === undefined) {
      return before.map(transaction.changes);
    }
    return set.value === null ? Decoration.none : Decoration.set(MARK.range(set.value.from, set.value.to));
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** What is particular to a language. */
function particular(language: Language, example: string | undefined): Extension {
  switch (language) {
    case "json":
      return [lineNumbers(), PLAIN, json(), syntaxHighlighting(defaultHighlightStyle)];
    case "javascript":
      return [lineNumbers(), PLAIN, javascript(), syntaxHighlighting(defaultHighlightStyle)];
    case "cel":
      return [
        SHORT,
        StreamLanguage.define(parser),
        syntaxHighlighting(COLOURS),
        autocompletion({ override: [complete], icons: false }),
        marked,
        example === undefined ? [] : placeholder(example),
      ];
  }
}

/** Text that replaces a selection is put there by the editor: a browser would keep the looks of what was there by inline styles, which the policy of the page forbids. */
const REPLACING = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    if (event.inputType !== "insertText" || event.data === null || view.state.selection.main.empty) {
      return false;
    }
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

/** An editor for a script, for JSON or for a condition. It sits in a shadow root, where it may use constructed style sheets. */
export default function CodeEditor({ value, onChange, language, label, id, about, isWrong = false, said, example, ref, focused }: EditorProps & { readonly focused: RefObject<boolean> }) {
  const completions = useWords().editor.completions;
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const description = useRef<HTMLParagraphElement>(undefined);
  const attributes = useRef(new Compartment());
  const changed = useRef(onChange);
  const latest = useRef(value);
  useImperativeHandle(ref, () => ({ focus: () => view.current?.focus() }), []);
  useEffect(() => {
    [changed.current, latest.current] = [onChange, value];
  });
  useEffect(() => {
    const host = place.current;
    if (host === null) {
      return;
    }
    const root = host.shadowRoot ?? host.attachShadow({ mode: "open", delegatesFocus: true });
    const state = EditorState.create({
      doc: latest.current,
      extensions: [
        particular(language, example),
        history(),
        bracketMatching(),
        // Tab goes on to the next field: nobody is caught in here.
        keymap.of([...defaultKeymap, ...historyKeymap]),
        EditorView.lineWrapping,
        LOOK,
        EditorState.phrases.of({ Completions: completions }),
        attributes.current.of([]),
        REPLACING,
        EditorView.updateListener.of((update) => {
          if (update.docChanged) {
            changed.current(update.state.doc.toString());
          }
        }),
      ],
    });
    const created = new EditorView({ state, root, parent: root });
    // Whoever sets the focus to the host means the text, not the box that scrolls around it.
    created.scrollDOM.addEventListener("focus", () => created.focus());
    // Names of elements are known only within their root.
    const paragraph = document.createElement("p");
    paragraph.id = "about";
    paragraph.hidden = true;
    root.append(paragraph);
    [view.current, description.current] = [created, paragraph];
    if (focused.current) {
      focused.current = false;
      created.focus();
    }
    return () => {
      created.destroy();
      paragraph.remove();
    };
  }, [language, example, completions, focused]);
  useEffect(() => {
    const [current, paragraph] = [view.current, description.current];
    if (current === undefined || paragraph === undefined) {
      return;
    }
    paragraph.textContent = about ?? "";
    const named = { "aria-label": label, ...(about === undefined ? {} : { "aria-describedby": paragraph.id }), ...(isWrong ? { "aria-invalid": "true" } : {}) };
    current.dispatch({ effects: attributes.current.reconfigure(EditorView.contentAttributes.of(named)) });
  }, [language, example, completions, label, about, isWrong]);
  useEffect(() => {
    const current = view.current;
    // The editor ends every line alike.
    const text = value.replaceAll(/\r\n?/g, "\n");
    if (current !== undefined && current.state.doc.toString() !== text) {
      current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: text } });
    }
  }, [value]);
  useEffect(() => {
    const current = view.current;
    if (current !== undefined && said !== undefined) {
      current.dispatch({ effects: mark.of(wrongIn(current.state.doc.toString(), said)) });
    }
  }, [language, example, completions, said]);
  return <div ref={place} id={id} className={clsx("overflow-hidden rounded border focus-within:outline-2 focus-within:outline-offset-2 focus-within:outline-accent", isWrong ? "border-block" : "border-edge")} />;
}
