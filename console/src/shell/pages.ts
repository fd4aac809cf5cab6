/** What loads each page. Pages that share a file are loaded once. */
const load = {
  overview: async () => (await import("../overview/page.tsx")).OverviewPage,
  chat: async () => (await import("../chat/page.tsx")).ChatPage,
  approvals: async () => (await import("../approvals/list.tsx")).ApprovalsPage,
  approval: async () => (await import("../approvals/one.tsx")).ApprovalPage,
  hooks: async () => (await import("../hooks/list.tsx")).HooksPage,
  newHook: async () => (await import("../hooks/new.tsx")).NewHookPage,
  changes: async () => (await import("../hooks/changes.tsx")).ChangesPage,
  imports: async () => (await import("../hooks/import.tsx")).ImportPage,
  hook: async () => (await import("../hooks/one.tsx")).HookPage,
  configuredHook: async () => (await import("../hooks/configured-one.tsx")).ConfiguredHookPage,
  turns: async () => (await import("../turns/list.tsx")).TurnsPage,
  turn: async () => (await import("../turns/one.tsx")).TurnPage,
  executions: async () => (await import("../executions/list.tsx")).ExecutionsPage,
  execution: async () => (await import("../executions/one.tsx")).ExecutionPage,
  chain: async () => (await import("../chain/page.tsx")).ChainPage,
  health: async () => (await import("../health/page.tsx")).HealthPage,
  settings: async () => (await import("../settings/page.tsx")).SettingsPage,
};

/** The pages by their addresses; of two that fit, the first one counts. */
export const PAGES = [
  ["/", load.overview],
  ["/chat", load.chat],
  ["/chat/$key", load.chat],
  ["/approvals", load.approvals],
  ["/approvals/$id", load.approval],
  ["/hooks", load.hooks],
  ["/hooks/new", load.newHook],
  ["/hooks/changes", load.changes],
  ["/hooks/import", load.imports],
  ["/hooks/configured/$family/$name", load.configuredHook],
  ["/hooks/$id", load.hook],
  ["/turns", load.turns],
  ["/turns/$id", load.turn],
  ["/executions", load.executions],
  ["/executions/$id", load.execution],
  ["/chain", load.chain],
  ["/health", load.health],
  ["/settings", load.settings],
  ["/settings/$part", load.settings],
] as const;

/** What loads the page at an address. */
export const loaderOf = (path: string) => PAGES.find(([page]) => new RegExp(`^${page.replace(/\$\w+/, "[^/]+")}/?$`).test(path))?.[1];
