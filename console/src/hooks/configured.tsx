import { GuardSign, useLack } from "../ui/guard-sign.tsx";
import type { ConfiguredHook } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";

/** A hook of the configuration, or a text of a skill: it is changed where it comes from. */
export function ConfiguredRow({ hook, cell }: { hook: ConfiguredHook; cell: string }) {
  const words = useWords();
  const lack = useLack()(hook.step, hook.why);
  const family = words.rules.families[hook.family as keyof typeof words.rules.families] ?? hook.family;
  return (
    <tr data-configured={hook.name} className="border-t border-line max-sm:block max-sm:px-3 max-sm:py-2">
      <td className={`${cell} max-sm:block`}>
        <span className="font-semibold wrap-anywhere">{hook.name}</span>
        <span className="block text-small text-muted">
          {words.rules.readOnly}
          {hook.origin !== null && (
            <>
              {" · "}
              <span className="wrap-anywhere">{hook.origin}</span>
            </>
          )}
        </span>
      </td>
      <td className={cell}>{family}</td>
      <td className={cell}>{hook.agents.length === 0 ? words.rules.everyAgent : <span className="line-clamp-2">{hook.agents.join(", ")}</span>}</td>
      <td className={cell}>{hook.matcher === "" ? <span className="text-muted">{words.hooks.everything}</span> : <code className="line-clamp-2">{hook.matcher}</code>}</td>
      <td className={cell}>
        <GuardSign state={hook.state} />
        {lack !== "" && <span className="block text-small text-muted wrap-anywhere">{lack}</span>}
      </td>
      <td className={`${cell} max-sm:hidden`}>–</td>
      <td className={`${cell} max-sm:hidden`}>–</td>
    </tr>
  );
}
