import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { isOthers } from "../chat/session-key.ts";
import { CallView } from "../approvals/call-view.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Problem } from "../ui/problem.tsx";
import type { JsonObject, TurnHook, TurnLine, TurnSpan } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { exception } from "./exception.ts";

/** The rule that refused a call, where one may change it over the socket. */
function useOwnRule(id: string | undefined) {
  const { connection, me } = useWire();
  const admin = useMay("admin");
  const found = useQuery({
    queryKey: ["hooks", "one", id],
    queryFn: async () => (await connection.request("hooks.get", { hookId: id ?? "" })).hook,
    enabled: admin && id !== undefined,
    retry: false,
  });
  const hook = found.data;
  const mayChange = hook !== undefined && hook.event === "pre_tool_use" && hook.source === "user" && typeof hook.metadata["file"] !== "string" && (hook.scope !== "global" || me.is_master_scope);
  return mayChange ? hook : undefined;
}

/** Whether somebody refused a call and a person may let it through: the call is asked about, tried again, and approved once. */
export function LetThrough({ hook, span, turn }: { hook: TurnHook; span: TurnSpan; turn: TurnLine }) {
  const words = useWords().turns.letThrough;
  const { me } = useWire();
  const [open, setOpen] = useState(false);
  const rule = useOwnRule(hook.execution?.hookId ?? undefined);
  const input = span.call?.arguments;
  const isMine = !turn.subAgent && !isOthers(turn.sessionKey, me.user_id);
  if (rule === undefined || span.tool === undefined || input === undefined || !isMine || hook.verdict !== "deny") {
    return null;
  }
  return (
    <div className="mt-3">
      <Button onClick={() => setOpen(true)}>{words.action}</Button>
      <Dialog open={open} onClose={() => setOpen(false)} title={words.title(span.tool)} about={words.about(hook.name)}>
        <Ask rule={rule} tool={span.tool} input={input} turn={turn} onClose={() => setOpen(false)} />
      </Dialog>
    </div>
  );
}

function Ask({ rule, tool, input, turn, onClose }: { rule: NonNullable<ReturnType<typeof useOwnRule>>; tool: string; input: JsonObject; turn: TurnLine; onClose: () => void }) {
  const all = useWords();
  const words = all.turns.letThrough;
  const { connection } = useWire();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const go = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await connection.request("hooks.create", exception(rule, tool, input, words.reason(rule.name || rule.id)));
      await queries.invalidateQueries({ queryKey: ["hooks"] });
      // What comes of it stands in the conversation.
      connection.request("chat.send", { sessionKey: turn.sessionKey, message: words.again(tool), stream: true }).catch(() => undefined);
      onClose();
      await navigate({ to: "/chat/$key", params: { key: turn.sessionKey } });
    } catch (failed) {
      setError(failed);
      setBusy(false);
    }
  };
  return (
    <>
      <CallView tool={tool} input={input} />
      <p className="mt-2 text-muted">{words.stays(rule.name || rule.id)}</p>
      <p className="mt-2">{words.sends}</p>
      <blockquote className="border-l-2 border-line pl-3">{words.again(tool)}</blockquote>
      {error !== undefined && <Problem error={error} />}
      <div className="mt-3 flex justify-end gap-2">
        <Button onClick={onClose}>{all.cancel}</Button>
        <Button look="primary" disabled={busy} onClick={() => void go()}>
          {words.confirm}
        </Button>
      </div>
    </>
  );
}
