import { Sign } from "../ui/sign.tsx";
import { When } from "../ui/when.tsx";
import type { Hook } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";
import { stateOf } from "./state.ts";

/** Whether a hook acts. */
export function StateSign({ hook }: { hook: Hook }) {
  const { states: words, offBecause } = useWords().hooks;
  const state = stateOf(hook);
  if (state === "tripped" && hook.tripped_at !== null) {
    return (
      <span className="inline-flex flex-wrap items-center gap-1">
        <Sign kind="tripped" word={words.tripped} />
        <span className="text-small text-muted">
          <When at={hook.tripped_at} />
        </span>
      </span>
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
