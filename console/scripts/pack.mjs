// Packs the built files: a server that has them packed does not pack them for each reader.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const files = ["dist/index.html", ...readdirSync("dist/assets").map((name) => `dist/assets/${name}`)];
for (const file of files.filter((name) => !name.endsWith(".gz"))) {
  writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
}
