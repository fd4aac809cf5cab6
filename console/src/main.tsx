import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./shell/app.tsx";
import type { Opened } from "./shell/dial.ts";
import { createPages } from "./shell/routes.tsx";
import type { Spoken } from "./words/speak.ts";
import "./ui/tokens.css";

/** Shows the pages. */
export function start(opened: Opened, spoken: Spoken): void {
  const root = document.getElementById("root");
  const pages = createPages();
  // By the time that one is let in, the page is there.
  void pages.load();
  if (root !== null) {
    createRoot(root).render(
      <StrictMode>
        <App opened={opened} spoken={spoken} pages={pages} />
      </StrictMode>,
    );
  }
}
