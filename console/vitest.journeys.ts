import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["journeys/**/*.test.ts"],
    // Each file has a server and a browser of its own.
    maxWorkers: 2,
    testTimeout: 60_000,
    // A journey that fails is walked once more, and named with its retry: the machine is shared with what else is checked.
    retry: 1,
    hookTimeout: 60_000,
    // A page is asked until it says what is expected: what it showed before may still stand there.
    expect: { poll: { timeout: 15_000 } },
  },
});
