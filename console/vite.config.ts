import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react(), tailwind()],
  build: {
    // The policy of the pages allows no `data:` but for pictures, and no script in the page itself.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    target: "es2022",
  },
});
