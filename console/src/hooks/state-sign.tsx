import { GUARD_SIGNS, useLack } from "../ui/guard-sign.tsx";
import { Name } from "../ui/name.tsx";
import { Sign } from "../ui/sign.tsx";
import { When } from "../ui/when.tsx";
import { useStanding, useTenantNames } from "../wire/queries.ts";
import type { Hook } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { stateOf, trippedSince, tripsOf } from "./state.ts";

/** The tenants in which a breaker is open, where it is not only the one in which one is. */
function Where({ all }: { all: readonly string[] }) {
  const { me } = useWire();
  const tenants = useTenantNames();
  if (all.every((tenant) => tenant === me.tenant_id)) {
    return null;
  }
  return (
    <>
      {" · "}
      <Name of={all.map((tenant) => tenants.get(tenant) ?? tenant).join(", ")} />
    </>
  );
}

/** Whether a hook acts. */
export function StateSign({ hook }: { hook: Hook }) {
  const all = useWords();
  const { states: words, offBecause, onBut } = all.hooks;
  const { guards } = all.overview;
  const state = stateOf(hook);
  const standing = useStanding().get(hook.id);
  const lack = useLack();
  const since = trippedSince(hook);
  if (since !== null) {
    return (
      <span className="inline-flex flex-wrap items-center gap-1">
        <Sign kind="tripped" word={words.tripped} />
        <span className="text-small text-muted">
          <When at={since} />
          <Where all={tripsOf(hook)} />
        </span>
      </span>
    );
  }
  // What is on and never answered, or cannot, is no good news.
  if (state === "on" && (standing?.state === "unproven" || standing?.state === "broken")) {
    return (
      <>
        <Sign kind={GUARD_SIGNS[standing.state]} word={onBut(guards[standing.state])} />
        <span className="block text-small font-normal text-muted wrap-anywhere">{lack(standing.step, standing.why)}</span>
      </>
    );
  }
  // Why somebody switched it off; what Pintle itself says has a state of its own.
  const reason = state === "off" && hook.disabled_reason !== "" && hook.disabled_reason !== "config" ? hook.disabled_reason : "";
  return (
    <>
      <Sign kind={state === "on" ? "allow" : "off"} word={words[state]} />
      {reason !== "" && <span className="block text-small font-normal text-muted wrap-anywhere">{offBecause(reason)}</span>}
    </>
  );
}
