import { Link, useParams } from "@tanstack/react-router";
import type { ComponentType } from "react";

import { Empty, Page } from "../ui/page.tsx";
import { useMay } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { EditionPart } from "./edition.tsx";
import { KeysPart } from "./keys.tsx";
import { MembersPart } from "./members.tsx";
import { TenantsPart } from "./tenants.tsx";
import { WebhooksPart } from "./webhooks.tsx";
import { YouPart } from "./you.tsx";

const PARTS = ["you", "members", "keys", "tenants", "webhooks", "edition"] as const;
type Part = (typeof PARTS)[number];

const SHOWN: Readonly<Record<Part, ComponentType>> = { you: YouPart, members: MembersPart, keys: KeysPart, tenants: TenantsPart, webhooks: WebhooksPart, edition: EditionPart };

/** Who may come in, and who is told. What a role may not do is not there. */
export function SettingsPage() {
  const words = useWords().settings;
  const admin = useMay("admin");
  const owner = useMay("owner");
  const { part: asked = "you" } = useParams({ strict: false }) as { part?: string };
  const may: Readonly<Record<Part, boolean>> = { you: true, members: admin, keys: admin, tenants: owner, webhooks: owner, edition: true };
  const part = PARTS.find((one) => one === asked && may[one]);
  const Shown = part === undefined ? undefined : SHOWN[part];
  return (
    <Page>
      <nav aria-label={words.title} className="mb-4 flex flex-wrap gap-x-4 border-b border-line">
        {PARTS.filter((one) => may[one]).map((one) => (
          <Link
            key={one}
            to="/settings/$part"
            params={{ part: one }}
            aria-current={one === part ? "page" : undefined}
            className="border-b-2 border-transparent py-1 text-muted aria-[current=page]:border-accent aria-[current=page]:font-semibold aria-[current=page]:text-text max-sm:flex max-sm:min-h-11 max-sm:items-center"
          >
            {words.parts[one]}
          </Link>
        ))}
      </nav>
      {Shown === undefined ? <Empty title={words.notFound}>{words.notFoundAbout}</Empty> : <Shown />}
    </Page>
  );
}
