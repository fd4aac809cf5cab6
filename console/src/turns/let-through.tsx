import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { isOthers } from "../chat/session-key.ts";
import { causeOf } from "../advice/advice.ts";
import { AdviceNote } from "../advice/advice-note.tsx";
import { CallView } from "../approvals/call-view.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Problem } from "../ui/problem.tsx";
import type { Hook, JsonObject, TurnHook, TurnLine, TurnSpan } from "../wire/types.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { nameInstead } from "../hooks/state.ts";
import { exception } from "./exception.ts";
import { hindrance, hindranceOf, isRefusal } from "./may-let-through.ts";

/** The rule that refused a call, as one may read it. */
function useRule(id: string | null | undefined, wanted: boolean): { rule: Hook | undefined; error: Error | null } {
  const { connection } = useWire();
  const found = useQuery({
    queryKey: ["hooks", "one", id],
    queryFn: async () => (await connection.request("hooks.get", { hookId: id ?? "" })).hook,
    enabled: wanted && typeof id === "string",
    retry: false,
  });
  return { rule: found.data, error: found.error };
}

/** Whether somebody refused a call and a person may let it through: the call is asked about, tried again, and approved once.
 * Where that is not so, it says why. */
export function LetThrough({ hook, span, turn }: { hook: TurnHook; span: TurnSpan; turn: TurnLine }) {
  const words = useWords().turns.letThrough;
  const { me } = useWire();
  const [open, setOpen] = useState(false);
  const asking = { isAdmin: useMay("admin"), isMaster: me.is_master_scope, isOthers: isOthers(turn.sessionKey, me.user_id) };
  const before = hindrance(hook, span, turn, asking);
  const { rule, error } = useRule(hook.execution?.hookId, before === undefined);
  if (!isRefusal(hook, span)) {
    return null;
  }
  const why = before ?? (rule === undefined ? undefined : hindranceOf(rule, asking));
  if (why !== undefined) {
    return (
      <>
        <p className="mt-3 text-muted">{words.not[why]}</p>
        <AdviceNote cause={why === "fault" ? causeOf(hook.cause ?? hook.reason) : undefined} />
      </>
    );
  }
  if (error !== null) {
    return <Problem error={error} />;
  }
  const input = span.call?.arguments;
  if (rule === undefined || span.tool === undefined || input === undefined) {
    return null;
  }
  return (
    <div className="mt-3">
      <Button onClick={() => setOpen(true)}>{words.action}</Button>
      <Dialog open={open} onClose={() => setOpen(false)} title={words.title(span.tool)} about={words.about(hook.name)}>
        <Ask rule={rule} tool={span.tool} input={input} because={hook.reason ?? ""} turn={turn} onClose={() => setOpen(false)} />
      </Dialog>
    </div>
  );
}

function Ask({ rule, tool, input, because, turn, onClose }: { rule: Hook; tool: string; input: JsonObject; because: string; turn: TurnLine; onClose: () => void }) {
  const all = useWords();
  const words = all.turns.letThrough;
  const { connection, me } = useWire();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const go = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await connection.request("hooks.create", exception(rule, { tool, input, turnId: turn.turnId, because }, words.reason(tool, rule.name || rule.id, me.user_id)));
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
      <p className="mt-2">{words.stays(rule.name || rule.id, nameInstead(rule))}</p>
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
