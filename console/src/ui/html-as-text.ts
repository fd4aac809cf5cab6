/** A part of a text in Markdown, as far as it is looked at here. */
interface Node {
  type: string;
  value?: string;
  children?: Node[] | undefined;
}

/** The parts of which lines of HTML are a block of their own; elsewhere it stands within a line. */
const BLOCKS = ["root", "blockquote", "listItem", "footnoteDefinition"];

function change(node: Node): void {
  node.children = node.children?.map((child) => {
    if (child.type !== "html") {
      change(child);
      return child;
    }
    const text = { type: "text", value: child.value ?? "" };
    return BLOCKS.includes(node.type) ? { type: "paragraph", children: [text] } : text;
  });
}

/** HTML in Markdown becomes text: nothing of an answer runs, and nothing of it is left out. */
export const htmlAsText = () => change;
