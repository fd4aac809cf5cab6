import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createRootRoute, createRoute, createRouter, Link, Outlet, RouterProvider } from "@tanstack/react-router";
import { createRoot } from "react-dom/client";

/** The least that a page with this framework can be: links, and nothing behind them. */
const root = createRootRoute({
  component: () => (
    <nav>
      {Array.from({ length: 9 }, (_, at) => (
        <Link key={at} to="/">
          {at}
        </Link>
      ))}
      <Outlet />
    </nav>
  ),
});
const router = createRouter({ routeTree: root.addChildren([createRoute({ getParentRoute: () => root, path: "/", component: () => null })]) });
const place = document.getElementById("root");
if (place !== null) {
  createRoot(place).render(
    <QueryClientProvider client={new QueryClient()}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  );
}
