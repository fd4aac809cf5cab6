import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";

import { oneLine } from "../turns/said.ts";
import { Button } from "../ui/button.tsx";
import { Select } from "../ui/field.tsx";
import { Problem } from "../ui/problem.tsx";
import { relative, useNow } from "../ui/when.tsx";
import { useWire } from "../wire/use-wire.ts";
import { useLanguage, useWords } from "../words/use-words.ts";
import { type PastEvent, pastEvents } from "./past.ts";

/** How many of the newest turns are looked at. */
const TURNS = 8;
/** How many of their events are offered. */
const MOST = 60;
/** Longest text of an event in the list. */
const LONGEST = 80;

/** One of the events that happened last, for whoever wants to ask about it again. They are fetched when somebody wants them. */
export function ChoosePast({ wanted, choose }: { wanted: (event: PastEvent) => boolean; choose: (event: PastEvent) => void }) {
  const words = useWords().chain.pastEvents;
  const { connection } = useWire();
  const language = useLanguage();
  const now = useNow();
  const id = useId();
  const [open, setOpen] = useState(false);
  const found = useQuery({
    queryKey: ["turns", "past"],
    queryFn: async () => {
      const { turns } = await connection.request("turns.list", { limit: TURNS });
      const all = await Promise.all(turns.map(({ turnId }) => connection.request("turns.get", { turnId })));
      return all.flatMap(({ turn, subAgents }) => [turn, ...subAgents].flatMap(pastEvents));
    },
    enabled: open,
  });
  if (!open) {
    return (
      <div>
        <Button onClick={() => setOpen(true)}>{words.open}</Button>
      </div>
    );
  }
  const keyOf = ({ turn, row }: PastEvent): string => `${turn} ${row ?? ""}`;
  const events = (found.data ?? []).filter(wanted).slice(0, MOST);
  const said = ({ tool, input, text }: PastEvent): string => (text ?? `${tool} ${oneLine(input)}`).replaceAll(/\s+/g, " ").slice(0, LONGEST);
  return (
    <div className="min-w-0">
      <label htmlFor={id} className="mb-1 block font-medium">
        {words.label}
      </label>
      <Select
        id={id}
        autoFocus
        value=""
        onChange={(change) => {
          const event = events.find((one) => keyOf(one) === change.target.value);
          if (event !== undefined) {
            choose(event);
          }
        }}
      >
        <option value="">{found.isPending ? words.loading : events.length === 0 ? words.none : words.choose}</option>
        {events.map((event) => (
          <option key={keyOf(event)} value={keyOf(event)}>
            {`${said(event)} · ${relative(Date.parse(event.at), now, language)}`}
          </option>
        ))}
      </Select>
      {found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
    </div>
  );
}
