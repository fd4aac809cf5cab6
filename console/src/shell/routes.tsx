import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";

import { Empty, Page } from "../ui/page.tsx";
import { useWords } from "../words/use-words.ts";
import { Frame } from "./frame.tsx";

/** What stands in an address beside its path: texts only. */
export type Search = Readonly<Record<string, string | undefined>>;

const texts = (search: Record<string, unknown>): Search =>
  Object.fromEntries(Object.entries(search).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]));

function NotFound() {
  const words = useWords();
  return (
    <Page>
      <Empty title={words.notFound.title}>{words.notFound.about}</Empty>
    </Page>
  );
}

/** The pages by their addresses. */
export function createPages() {
  const root = createRootRoute({ component: Frame, notFoundComponent: NotFound, validateSearch: texts });
  const page = <P extends string>(path: P, component: ReturnType<typeof lazyRouteComponent>) =>
    createRoute({ getParentRoute: () => root, path, component });
  const routes = [
    page("/", lazyRouteComponent(() => import("../overview/page.tsx"), "OverviewPage")),
    page("/chat", lazyRouteComponent(() => import("../chat/page.tsx"), "ChatPage")),
    page("/chat/$key", lazyRouteComponent(() => import("../chat/page.tsx"), "ChatPage")),
    page("/approvals", lazyRouteComponent(() => import("../approvals/list.tsx"), "ApprovalsPage")),
    page("/approvals/$id", lazyRouteComponent(() => import("../approvals/one.tsx"), "ApprovalPage")),
    page("/hooks", lazyRouteComponent(() => import("../hooks/list.tsx"), "HooksPage")),
    page("/hooks/new", lazyRouteComponent(() => import("../hooks/new.tsx"), "NewHookPage")),
    page("/hooks/$id", lazyRouteComponent(() => import("../hooks/one.tsx"), "HookPage")),
    page("/turns", lazyRouteComponent(() => import("../turns/list.tsx"), "TurnsPage")),
    page("/turns/$id", lazyRouteComponent(() => import("../turns/one.tsx"), "TurnPage")),
    page("/executions", lazyRouteComponent(() => import("../executions/list.tsx"), "ExecutionsPage")),
    page("/executions/$id", lazyRouteComponent(() => import("../executions/one.tsx"), "ExecutionPage")),
    page("/chain", lazyRouteComponent(() => import("../chain/page.tsx"), "ChainPage")),
    page("/health", lazyRouteComponent(() => import("../health/page.tsx"), "HealthPage")),
    page("/settings", lazyRouteComponent(() => import("../settings/page.tsx"), "SettingsPage")),
    page("/settings/$part", lazyRouteComponent(() => import("../settings/page.tsx"), "SettingsPage")),
  ];
  return createRouter({ routeTree: root.addChildren(routes), defaultPreload: false, defaultNotFoundComponent: NotFound });
}
