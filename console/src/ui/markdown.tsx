import Markdown, { type Components } from "react-markdown";
import gfm from "remark-gfm";

import { ExactProse } from "./exact.tsx";
import { exactInMarkdown } from "./exact-in-markdown.ts";
import { htmlAsText } from "./html-as-text.ts";
import { isItself, SAFE, targetOf } from "./link-target.ts";

const COMPONENTS: Components = {
  // Where a link leads is shown: its text is somebody else's.
  a: ({ href, children }) =>
    href !== undefined && SAFE.test(href) ? (
      <>
        <a href={href} rel="noopener noreferrer" target="_blank" title={href}>
          {children}
        </a>
        {typeof children === "string" && isItself(children, href) ? null : <span className="text-small text-muted wrap-anywhere"> ({targetOf(href)})</span>}
      </>
    ) : (
      <span>{children}</span>
    ),
  span: ({ children }) => (typeof children === "string" ? <ExactProse text={children} /> : <span>{children}</span>),
  // Pictures load from nowhere else: their text stands in their place.
  img: ({ alt }) => <span>{alt}</span>,
};

/** Markdown of a model. It becomes elements; HTML in it stands there as the text that it is. */
export default function MarkdownText({ text }: { text: string }) {
  return (
    <div className="prose">
      <Markdown remarkPlugins={[gfm, htmlAsText]} rehypePlugins={[exactInMarkdown]} components={COMPONENTS}>
        {text}
      </Markdown>
    </div>
  );
}
