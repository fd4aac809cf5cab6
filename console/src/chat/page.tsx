import { Link, Navigate, useNavigate, useParams } from "@tanstack/react-router";
import { useEffect, useState } from "react";

import { Button } from "../ui/button.tsx";
import { toldApart, toTheSecond } from "../ui/apart.ts";
import { clsx } from "../ui/clsx.ts";
import { Select } from "../ui/field.tsx";
import { useListKeys } from "../ui/list-keys.ts";
import { Name } from "../ui/name.tsx";
import { Empty, Page } from "../ui/page.tsx";
import { When } from "../ui/when.tsx";
import { useAgents, useSessions } from "../wire/queries.ts";
import type { SessionLine } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useLanguage, useWords } from "../words/use-words.ts";
import { ConversationView } from "./conversation.tsx";
import { keptKey, newKey, parts, shownKey } from "./session-key.ts";

/** Room for this many conversations; random enough that two do not meet. */
const random = (): string => crypto.randomUUID().slice(0, 8);

export function ChatPage() {
  const words = useWords().chat;
  const { me } = useWire();
  const { key } = useParams({ strict: false }) as { key?: string };
  const sessions = useSessions();
  const moment = toTheSecond(useLanguage());
  const apart = toldApart((sessions.data ?? []).map((session) => ({ key: session.key, name: called(session), when: moment.format(new Date(session.updated)) })));
  useListKeys();
  const mayTalk = useMay("operator", "operator.write");
  useEffect(() => {
    document.title = `${words.title} · Pintle`;
  }, [words]);
  // An address names the user whose conversation it is: it leads everybody to the same one.
  if (key !== undefined && keptKey(key, me.user_id) !== key) {
    return <Navigate to="/chat/$key" params={{ key: keptKey(key, me.user_id) }} replace />;
  }
  return (
    <div className="grid h-dvh grid-cols-[208px_minmax(0,1fr)] max-lg:grid-cols-1 max-sm:h-[calc(100dvh-56px)]">
      <aside aria-label={words.conversations} className={clsx("overflow-y-auto border-r border-line px-2 py-3", key !== undefined && "max-lg:hidden")}>
        {key === undefined && <h1 className="px-2 pb-2 text-title font-semibold lg:hidden">{words.title}</h1>}
        <Begin />
        <ul className="mt-2" data-conversations>
          {(sessions.data ?? []).map((session) => (
            <li key={session.key}>
              <SessionLink session={session} apart={apart.get(session.key)} />
            </li>
          ))}
        </ul>
        {sessions.data?.length === 0 && <p className="px-2 text-muted">{words.none}</p>}
      </aside>
      {key === undefined ? (
        <div className="max-lg:hidden">
          <Page>
            <h1 className="text-title font-semibold">{words.title}</h1>
            <p className="mb-4 text-muted">{mayTalk ? words.about : words.aboutOnly}</p>
            <Empty title={mayTalk ? words.choose : words.chooseOnly}>{words.chooseAbout}</Empty>
          </Page>
        </div>
      ) : (
        <ConversationView key={key} sessionKey={shownKey(key, me.user_id)} />
      )}
    </div>
  );
}

/** What a conversation is called. */
const called = (session: SessionLine): string => session.label || parts(session.key)?.conversation || session.key;

/** A conversation in the list; `apart` tells it from others that are called the same. */
function SessionLink({ session, apart }: { session: SessionLine; apart: string | undefined }) {
  const { me } = useWire();
  return (
    <Link to="/chat/$key" params={{ key: keptKey(session.key, me.user_id) }} className="block rounded px-2 py-1 hover:bg-raised max-sm:min-h-11" activeProps={{ className: "bg-tint! font-semibold", "aria-current": "page" }}>
      <span className="block truncate"><Name of={called(session)} /></span>
      <span className="block truncate text-small text-muted">
        <Name of={session.agentId} />
        {session.userId !== undefined && (
          <>
            {" · "}
            <Name of={session.userId} />
          </>
        )}
        {" · "}
        <When at={session.updated} />
      </span>
      {apart !== undefined && <span className="block truncate text-small text-muted">{apart}</span>}
    </Link>
  );
}

/** A conversation with one of the agents. */
function Begin() {
  const words = useWords().chat;
  const navigate = useNavigate();
  const agents = useAgents().data ?? [];
  const mayTalk = useMay("operator", "operator.write");
  const isOfRole = useMay("operator");
  const { me } = useWire();
  const [chosen, setChosen] = useState("");
  const agent = chosen || agents[0]?.id;
  if (!mayTalk) {
    return <p className="px-2 text-muted">{isOfRole ? words.mayNotKey : words.mayNot}</p>;
  }
  return (
    <div className="flex gap-2">
      {agents.length > 1 && (
        <Select aria-label={words.agent} value={agent ?? ""} onChange={(event) => setChosen(event.target.value)}>
          {agents.map(({ id }) => (
            <option key={id}>{id}</option>
          ))}
        </Select>
      )}
      <Button
        className="flex-1"
        disabled={agent === undefined}
        onClick={() => agent !== undefined && void navigate({ to: "/chat/$key", params: { key: keptKey(newKey(agent, random()), me.user_id) } })}
      >
        {words.begin}
      </Button>
    </div>
  );
}
