import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useState } from "react";

import { PintleClient, RequestError, type Welcome } from "../wire/client.ts";
import { claim, exchange, forget, hasSession, signOut, switchTenant, takeCode } from "../wire/session.ts";
import { isLost, useConnectionState, WireContext } from "../wire/use-wire.ts";
import { CATALOGUES, LanguageContext } from "../words/use-words.ts";
import { keepLanguage, keepScheme, type Preferences, PreferencesContext, readLanguage, readScheme, show } from "./preferences.ts";
import { createPages } from "./routes.tsx";
import { SignIn } from "./sign-in.tsx";

/** The longest wait before a lost connection is tried again, in milliseconds. */
const LONGEST_WAIT_MS = 10_000;

/** What the server refused because of what was asked is refused again. */
const mayRetry = (count: number, error: unknown): boolean =>
  count < 2 && !(error instanceof RequestError && ["INVALID_REQUEST", "UNAUTHORIZED", "NOT_FOUND", "FAILED_PRECONDITION"].includes(error.code));

function usePreferences(): Preferences {
  const [scheme, setScheme] = useState(readScheme);
  const [language, setLanguage] = useState(readLanguage);
  useEffect(() => {
    keepScheme(scheme);
    show(scheme);
    const system = matchMedia("(prefers-color-scheme: dark)");
    const again = (): void => show(scheme);
    system.addEventListener("change", again);
    return () => system.removeEventListener("change", again);
  }, [scheme]);
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  return useMemo(
    () => ({
      scheme,
      language,
      setScheme,
      setLanguage: (to) => {
        keepLanguage(to);
        setLanguage(to);
      },
    }),
    [scheme, language],
  );
}

/** All of it. */
export function App() {
  const preferences = usePreferences();
  const [times, setTimes] = useState(0);
  const [linked, setLinked] = useState(false);
  const [bad, setBad] = useState<unknown>();
  useEffect(() => {
    const code = takeCode();
    if (code === undefined) {
      setLinked(true);
    } else {
      exchange(code)
        .catch(setBad)
        .finally(() => setLinked(true));
    }
  }, []);
  const again = useCallback(() => {
    setBad(undefined);
    setTimes((so) => so + 1);
  }, []);
  return (
    <LanguageContext value={preferences.language}>
      {linked && <Connected key={times} preferences={preferences} bad={bad} again={again} />}
    </LanguageContext>
  );
}

function Connected({ preferences, bad, again }: { preferences: Preferences; bad: unknown; again: () => void }) {
  const [connection, setConnection] = useState<PintleClient>();
  useEffect(() => {
    const made = new PintleClient(`${location.origin.replace(/^http/, "ws")}/ws`, { credentials: () => Promise.resolve(claim()), longestWaitMs: LONGEST_WAIT_MS });
    // What comes of it is its state.
    made.connect().catch(() => undefined);
    setConnection(made);
    return () => made.close();
  }, []);
  return connection === undefined ? null : <Signed connection={connection} preferences={preferences} bad={bad} again={again} />;
}

function Signed({ connection, preferences, bad, again }: { connection: PintleClient; preferences: Preferences; bad: unknown; again: () => void }) {
  const state = useConnectionState(connection);
  const words = CATALOGUES[preferences.language];
  const [wantsIn, setWantsIn] = useState(bad !== undefined);
  const queries = useMemo(() => new QueryClient({ defaultOptions: { queries: { retry: mayRetry, staleTime: 2_000, refetchOnWindowFocus: false } } }), []);
  const leave = useCallback(() => {
    void signOut().then(() => {
      connection.close();
      setWantsIn(true);
    });
  }, [connection]);
  // Everything is asked for anew: nothing of one tenant is shown in another.
  const goTo = useCallback((tenant: string) => switchTenant(tenant).then(again), [again]);
  const isRefused = state.is === "closed" && state.error !== undefined;
  // Who one is stays known while the connection is away.
  const [me, setMe] = useState<Welcome>();
  useEffect(() => {
    if (state.is === "connected") {
      setMe(state.welcome);
    }
  }, [state]);
  const wire = useMemo(() => (me === undefined ? undefined : { connection, me, signOut: leave, goTo }), [connection, me, leave, goTo]);
  const router = useMemo(createPages, []);
  // Whoever said nothing yet is not told that it was wrong.
  const [ended, setEnded] = useState<unknown>();
  useEffect(() => {
    if (state.is === "closed" && state.error !== undefined && hasSession()) {
      setEnded(state.error);
      forget();
    }
  }, [state]);
  if (wantsIn || isRefused) {
    return <SignIn why={bad ?? ended} onDone={again} />;
  }
  if (wire === undefined) {
    return <p className="p-6 text-muted">{isLost(state) ? words.frame.lost : words.frame.connecting}</p>;
  }
  return (
    <PreferencesContext value={preferences}>
      <WireContext value={wire}>
        <QueryClientProvider client={queries}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </WireContext>
    </PreferencesContext>
  );
}
