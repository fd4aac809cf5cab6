import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { hasDrafts as hasReasons } from "../approvals/reason.ts";
import { hasDrafts as hasChatDrafts } from "../chat/kept-draft.ts";
import { hasDrafts as hasHookDrafts } from "../hooks/kept.ts";
import { adviceOf } from "../ui/advice-of.ts";
import { type PintleClient, RequestError, type Welcome } from "../wire/client.ts";
import { hasDrafts } from "../wire/drafts.ts";
import { forget, hasSession, isTakenAway, SessionEnded, signOut, switchTenant } from "../wire/session.ts";
import { isLost, useConnectionState, WireContext } from "../wire/use-wire.ts";
import { keepLanguage } from "../words/language.ts";
import { speak, type Spoken } from "../words/speak.ts";
import { SpokenContext, useWords } from "../words/use-words.ts";
import { dial, type Opened } from "./dial.ts";
import { dropList, forgetList, LOOK } from "./first-look.ts";
import { type Preferences, PreferencesContext } from "./preferences.ts";
import type { Pages } from "./routes.tsx";
import { keepScheme, readScheme, show } from "./scheme.ts";

const SignIn = lazy(async () => ({ default: (await import("./sign-in.tsx")).SignIn }));

/** What the server refused because of what was asked is refused again. */
const mayRetry = (count: number, error: unknown): boolean =>
  count < 2 && !(error instanceof RequestError && ["INVALID_REQUEST", "UNAUTHORIZED", "NOT_FOUND", "FAILED_PRECONDITION"].includes(error.code));

/** How long what was read stays known after its page was left, in milliseconds: it is shown while the server is away. */
const KEPT_MS = 3_600_000;

function usePreferences(first: Spoken): { preferences: Preferences; spoken: Spoken } {
  const [scheme, setScheme] = useState(readScheme);
  const [spoken, setSpoken] = useState(first);
  const { language } = spoken;
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
  const preferences = useMemo(
    () => ({
      scheme,
      language,
      setScheme,
      setLanguage: (to: Spoken["language"]) => {
        keepLanguage(to);
        void speak(to).then(setSpoken);
      },
    }),
    [scheme, language],
  );
  return { preferences, spoken };
}

/** All of it. */
export function App({ opened, spoken: first, pages }: { opened: Opened; spoken: Spoken; pages: Pages }) {
  const { preferences, spoken } = usePreferences(first);
  const [now, setNow] = useState({ ...opened, times: 0 });
  const { connection, times } = now;
  const again = useCallback(() => {
    connection.close();
    setNow({ connection: dial(), bad: undefined, times: times + 1 });
  }, [connection, times]);
  return (
    <SpokenContext value={spoken}>
      <Signed key={times} connection={connection} preferences={preferences} pages={pages} bad={now.bad} again={again} />
    </SpokenContext>
  );
}

interface About {
  readonly connection: PintleClient;
  readonly preferences: Preferences;
  readonly pages: Pages;
  /** What was wrong with the link that somebody came with. */
  readonly bad: unknown;
  readonly again: () => void;
}

function Signed({ connection, preferences, pages, bad, again }: About) {
  const state = useConnectionState(connection);
  const words = useWords();
  const [wantsIn, setWantsIn] = useState(bad !== undefined);
  // What somebody does fails at once where the network is away: it is not done later, when they no longer look.
  const queries = useMemo(() => new QueryClient({ defaultOptions: { queries: { retry: mayRetry, gcTime: KEPT_MS, staleTime: 2_000, refetchOnWindowFocus: false }, mutations: { networkMode: "always" } } }), []);
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
  if (state.is === "connected" && state.welcome !== me) {
    setMe(state.welcome);
  }
  const wire = useMemo(() => (me === undefined ? undefined : { connection, me, signOut: leave, goTo }), [connection, me, leave, goTo]);
  // Whoever said nothing yet is not told that it was wrong.
  const [ended, setEnded] = useState<unknown>();
  const taken = useRef(false);
  const wasIn = me !== undefined;
  useEffect(() => {
    if (state.is === "waiting") {
      taken.current ||= isTakenAway(state.error);
    } else if (state.is === "connected") {
      taken.current = false;
    }
    // Another page of this browser may have forgotten the session before this one.
    if (state.is === "closed" && state.error !== undefined && (hasSession() || wasIn)) {
      setEnded(adviceOf(state.error) === "CREDENTIALS" ? new SessionEnded(hasChatDrafts() || hasHookDrafts() || hasReasons() || hasDrafts(), taken.current) : state.error);
      forget();
    }
  }, [state, wasIn]);
  const isOutside = wantsIn || isRefused;
  const isAway = isLost(state);
  // Where the pages do not come, what was there before them goes.
  useLayoutEffect(() => {
    if (isOutside) {
      forgetList();
    }
    if (isOutside || isAway) {
      dropList();
    }
  }, [isOutside, isAway]);
  if (isOutside) {
    return (
      <Suspense fallback={null}>
        <SignIn why={bad ?? ended} without={bad !== undefined && me !== undefined ? () => setWantsIn(false) : undefined} onDone={again} />
      </Suspense>
    );
  }
  if (wire === undefined) {
    // Beside the list of pages, which may be there already.
    return (
      <div className={LOOK.frame}>
        <p className="col-start-2 p-6 text-muted">{isAway ? words.frame.lost : words.frame.connecting}</p>
      </div>
    );
  }
  return (
    <PreferencesContext value={preferences}>
      <WireContext value={wire}>
        <QueryClientProvider client={queries}>
          <RouterProvider router={pages} />
        </QueryClientProvider>
      </WireContext>
    </PreferencesContext>
  );
}
