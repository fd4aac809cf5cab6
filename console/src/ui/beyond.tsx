import { hasSession } from "../wire/session.ts";
import type { KeyScope } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";
import { Empty, Page } from "./page.tsx";

/** In the place of a page that a role has, and not the key that somebody came with, nor anybody who did not sign in. */
export function Beyond({ scope }: { scope: KeyScope }) {
  const words = useWords();
  const { beyond, keys } = words.settings;
  return (
    <Page>
      <Empty isPage title={hasSession() ? beyond.title : beyond.signIn}>
        {hasSession() ? beyond.about(keys.scope[scope].name, scope) : words.signIn.link}
      </Empty>
    </Page>
  );
}
