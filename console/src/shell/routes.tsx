import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Link } from "@tanstack/react-router";

import { Empty, Page } from "../ui/page.tsx";
import { useWords } from "../words/use-words.ts";
import { Frame } from "./frame.tsx";
import { PAGES } from "./pages.ts";

/** What stands in an address beside its path: texts only. */
export type Search = Readonly<Record<string, string | undefined>>;

const texts = (search: Record<string, unknown>): Search =>
  Object.fromEntries(Object.entries(search).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]));

function NotFound() {
  const words = useWords();
  return (
    <Page>
      <Empty title={words.notFound.title}>
        {words.notFound.about} <Link to="/">{words.notFound.back}</Link>
      </Empty>
    </Page>
  );
}

/** The pages by their addresses. */
export function createPages() {
  const root = createRootRoute({ component: Frame, notFoundComponent: NotFound, validateSearch: texts });
  const routes = PAGES.map(([path, load]) => createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(async () => ({ default: await load() })) }));
  return createRouter({ routeTree: root.addChildren(routes), defaultPreload: false, defaultNotFoundComponent: NotFound });
}

export type Pages = ReturnType<typeof createPages>;
