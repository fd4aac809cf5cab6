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
          ...[...all].filter((name) => !named.has(name)).map((name) => ({ tag: "link", attrs: { rel: "modulepreload", crossorigin: true, href: `/${name}` }, injectTo: "head" as const })),
          ...[...styles].map((name) => ({ tag: "link", attrs: { rel: "stylesheet", crossorigin: true, href: `/${name}` }, injectTo: "head" as const })),
        ];
      },
    },
  };
}

export default defineConfig({
  plugins: [react(), tailwind(), needed()],
  build: {
    // The policy of the pages allows no `data:` but for pictures, and no script in the page itself.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    target: "es2022",
  },
});
