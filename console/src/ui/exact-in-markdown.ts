import { marksInProse } from "./exact.ts";

/** A part of a page that Markdown becomes, as far as it is looked at here. */
interface Node {
  type: string;
  value?: string;
  tagName?: string;
  properties?: Record<string, string>;
  children?: Node[] | undefined;
}

function change(node: Node): void {
  node.children = node.children?.map((child) => {
    change(child);
    const isMarked = child.type === "text" && marksInProse(child.value ?? "").length > 0;
    return isMarked ? { type: "element", tagName: "span", properties: {}, children: [child] } : child;
  });
}

/** Each text in which something cannot be seen stands in an element of its own, which shows it. */
export const exactInMarkdown = () => change;
