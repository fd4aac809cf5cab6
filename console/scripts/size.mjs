// The first load stays small: what the page needs before it shows anything, compressed as servers send it.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 250 * 1024;
const manifest = JSON.parse(readFileSync("dist/.vite/manifest.json", "utf8"));
const files = new Set();
const visit = (name) => {
  const part = manifest[name];
  if (files.has(part.file)) return;
  files.add(part.file);
  for (const style of part.css ?? []) files.add(style);
  for (const needed of part.imports ?? []) visit(needed);
};
for (const [, file] of readFileSync("dist/index.html", "utf8").matchAll(/(?:src|href)="\/(assets\/[^"]+\.(?:js|css))"/g)) files.add(file);
// And the larger language, and the page that opens first.
const [language] = ["src/words/en.ts", "src/words/zh.ts"].sort((one, two) => readFileSync(`dist/${manifest[two].file}`).length - readFileSync(`dist/${manifest[one].file}`).length);
for (const name of ["src/main.tsx", language, "src/overview/page.tsx"]) visit(name);
let total = 0;
for (const file of files) total += gzipSync(readFileSync(`dist/${file}`), { level: 9 }).length;
console.log(`first load: ${(total / 1024).toFixed(1)} KiB compressed in ${files.size} files, of ${LIMIT / 1024} KiB`);
if (total > LIMIT) process.exit(1);
