import { Link } from "@tanstack/react-router";

import { GuardSign, useLack } from "../ui/guard-sign.tsx";
import { Name } from "../ui/name.tsx";
import type { ConfiguredHook, HookCountsAt } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";
import { CELL, Did, FIRST_CELL } from "./did.tsx";

/** A hook of the configuration, or a text of a skill: it is changed where it comes from. */
export function ConfiguredRow({ hook, did }: { hook: ConfiguredHook; did: HookCountsAt | undefined }) {
  const words = useWords();
  const lack = useLack()(hook.step, hook.why);
  const family = words.rules.families[hook.family as keyof typeof words.rules.families] ?? hook.family;
  return (
    <tr data-configured={hook.name} className="border-t border-line max-sm:block max-sm:px-3 max-sm:py-2">
      <td className={FIRST_CELL}>
        <Link data-row to="/hooks/configured/$family/$name" params={{ family: hook.family, name: hook.name }} className="font-semibold wrap-anywhere hover:underline max-sm:flex max-sm:min-h-11 max-sm:items-center">
          <Name of={hook.name} />
        </Link>
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
      <td className={CELL}>{family}</td>
      <td className={CELL}>{hook.agents.length === 0 ? words.rules.everyAgent : <span className="line-clamp-2">{hook.agents.join(", ")}</span>}</td>
      <td className={CELL}>{hook.matcher === "" ? <span className="text-muted">{words.hooks.everything}</span> : <code className="line-clamp-2"><Name of={hook.matcher} /></code>}</td>
      <td className={CELL}>
        <GuardSign state={hook.state} />
        {lack !== "" && <span className="block text-small text-muted wrap-anywhere">{lack}</span>}
      </td>
      <Did did={did} />
    </tr>
  );
}
