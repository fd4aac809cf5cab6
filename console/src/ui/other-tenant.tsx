import { useMutation } from "@tanstack/react-query";

import { useTenants } from "../wire/queries.ts";
import { hasSession } from "../wire/session.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { Button } from "./button.tsx";
import { Name } from "./name.tsx";
import { Problem } from "./problem.tsx";

/** Prints a link that signs one in there. */
const LINK = "pintle serve link --role owner --tenant";

/** Says that something is another tenant's, and leads there: whoever acts on it does so in that tenant. */
export function OtherTenant({ id }: { id: string }) {
  const words = useWords();
  const { goTo } = useWire();
  const tenant = (useTenants().data ?? []).find((one) => one.id === id);
  const name = tenant?.name || tenant?.slug || id;
  const go = useMutation({ mutationFn: goTo });
  return (
    <div className="my-3" data-testid="elsewhere">
      <p className="mb-2 flex flex-wrap items-center gap-3">
        {words.rules.otherTenant(name)}
        {hasSession() ? (
          <Button disabled={go.isPending} onClick={() => go.mutate(id)}>
            {words.rules.otherTenantGo(name)}
          </Button>
        ) : (
          <span>
            {words.rules.otherTenantLink}{" "}
            <code>
              {LINK} <Name of={tenant?.slug ?? id} />
            </code>
          </span>
        )}
      </p>
      {go.error !== null && <Problem error={go.error} />}
    </div>
  );
}
