import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** Every page needs this, and its texts; the browser fetches it while the first script is still on its way. */
const NEEDED = "src/main.tsx";

/** Names in the page what every page needs, so that nothing waits for a script that waits for another one. */
function needed(): Plugin {
  return {
    name: "needed",
    transformIndexHtml: {
      order: "post",
      handler: (_, { bundle = {} }) => {
        const chunks = Object.values(bundle).filter((one) => one.type === "chunk");
        const entry = chunks.find(({ isEntry }) => isEntry);
        // The page names what its first script imports by itself.
        const named = new Set([entry?.fileName, ...(entry?.imports ?? [])]);
        const all = new Set<string>();
        const styles = new Set<string>();
        const take = (name: string): void => {
          const chunk = chunks.find(({ fileName }) => fileName === name);
          if (chunk !== undefined && !all.has(name)) {
            all.add(name);
            chunk.viteMetadata?.importedCss.forEach((style) => styles.add(style));
            chunk.imports.forEach(take);
          }
        };
        take(chunks.find(({ facadeModuleId }) => facadeModuleId?.endsWith(NEEDED))?.fileName ?? "");
        return [
          // Fetched, not read: what comes first is run first.
          ...[...all].filter((name) => !named.has(name)).map((name) => ({ tag: "link", attrs: { rel: "preload", as: "script", crossorigin: true, href: `/${name}` }, injectTo: "head" as const })),
          ...[...styles].map((name) => ({ tag: "link", attrs: { rel: "stylesheet", crossorigin: true, href: `/${name}` }, injectTo: "head" as const })),
        ];
      },
    },
  };
}

/** What begins before anything is there: it needs nothing of the rest. */
const FIRST = /clients\/typescript\/|src\/(early|wire\/(client|session)|shell\/(dial|first-look|pages|scheme)|words\/(language|speak))\.ts$|preload-helper/;
/** What every page is made of: one file, since each one costs a slow machine more than what is in it. */
const BASE = /node_modules\/(react|react-dom|scheduler|use-sync-external-store|@tanstack\/(react-query|query-core|react-router|router-core|history|react-store|store))\/|src\/(shell\/(app|frame|later|me|routes|preferences)|words\/(use-words|count)|wire\/(paged|queries|types|use-watch|use-wire)|ui\/(button|clsx|field|list-keys|page|problem|sign|span|table|took|when))\.tsx?$/;

export default defineConfig({
  plugins: [react(), tailwind(), needed()],
  build: {
    // The policy of the pages allows no `data:` but for pictures, and no script in the page itself.
    assetsInlineLimit: 0,
    // What a page needs beside that is small; naming it in the page would cost more than it saves.
    modulePreload: false,
    manifest: true,
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "first", test: FIRST, priority: 2 }, { name: "base", test: BASE, priority: 1 }] } } },
    target: "es2022",
  },
});
