import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

import ts from "typescript";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "..");
/** The members in which names stand that others gave. */
const FOREIGN = ["name", "hook_name", "userId", "user_id", "agentId", "agent_id", "owner", "by", "tenant_name", "prompt", "slug", "device", "label", "tool_name", "tool", "agent"];
/** Names that nobody but the program gives. */
const OWN = ["page"];
/** What chooses between two of them. */
const CHOICES: readonly ts.SyntaxKind[] = [ts.SyntaxKind.BarBarToken, ts.SyntaxKind.QuestionQuestionToken];

const isForeign = (node: ts.Expression): boolean => {
  if (ts.isPropertyAccessExpression(node)) {
    return FOREIGN.includes(node.name.text) && !OWN.includes(node.expression.getText()) && !/\bwords\b/i.test(node.expression.getText()) && !node.expression.getText().startsWith("all.");
  }
  return ts.isBinaryExpression(node) && CHOICES.includes(node.operatorToken.kind) && (isForeign(node.left) || isForeign(node.right));
};

/** Names that stand in a page as they are, among other texts. */
function bare(file: string, content: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isJsxExpression(node) && !ts.isJsxAttribute(node.parent) && node.expression !== undefined && isForeign(node.expression)) {
      found.push(`${file}: ${node.expression.getText()}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, content, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX));
  return found;
}

test.each([
  ["<p>{hook.name}</p>", 1],
  ["<p>{hook.name || hook.id}</p>", 1],
  ["<p>{me.tenant_name || me.tenant_slug}</p>", 1],
  ["<p><Name of={hook.name} /></p>", 0],
  ["<p>{words.name}</p>", 0],
  ["<p title={hook.name} />", 0],
])("%s: %i", (content, count) => {
  expect(bare("a.tsx", content)).toHaveLength(count);
});

test("no name that others gave stands among other texts without its bounds", () => {
  const files = readdirSync(ROOT, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tsx"));
  expect(files.length).toBeGreaterThan(80);
  expect(files.flatMap((name) => bare(name, readFileSync(`${ROOT}/${name}`, "utf8")))).toEqual([]);
}, 60_000);
