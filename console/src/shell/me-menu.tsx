import * as Menu from "@radix-ui/react-dropdown-menu";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useContext } from "react";

import { clsx } from "../ui/clsx.ts";
import { Name } from "../ui/name.tsx";
import { useTenants } from "../wire/queries.ts";
import { hasSession } from "../wire/session.ts";
import { useMay, useWire } from "../wire/use-wire.ts";
import { useLanguage, useWords } from "../words/use-words.ts";
import { type Preferences, PreferencesContext } from "./preferences.ts";

const ITEM = "flex cursor-pointer items-center rounded px-2 py-1 -outline-offset-2! outline-accent data-highlighted:bg-tint data-highlighted:outline-2 max-sm:min-h-11";

export interface MenuAbout {
  readonly more: readonly { readonly to: string; readonly name: string }[];
  readonly onFind: () => void;
  readonly onKeys: () => void;
}

/** What concerns oneself, behind a button that stands there before this is loaded. */
export function MeMenu({ more, onFind, onKeys, defaultOpen, className, children }: MenuAbout & { defaultOpen: boolean; className: string; children: ReactNode }) {
  const preferences = useContext(PreferencesContext);
  const words = useWords();
  const language = useLanguage();
  const { me, signOut } = useWire();
  const navigate = useNavigate();
  return (
    <Menu.Root modal={false} defaultOpen={defaultOpen}>
      <Menu.Trigger className={className}>{children}</Menu.Trigger>
      {/* It stands beside its button: whoever goes from landmark to landmark comes to it. */}
      <Menu.Content side="top" align="start" className="z-20 min-w-45 rounded-md border border-line bg-surface p-1" aria-label={words.frame.me}>
        <Menu.Label className="px-2 py-1 text-small text-muted">
          <Name of={me.user_id} /> · {words.roles[me.role]} · <Name of={me.tenant_name || me.tenant_slug} /> · {me.edition} · {me.server.version}
        </Menu.Label>
        {more.map(({ to, name }) => (
          <Menu.Item key={to} className={clsx(ITEM, "sm:hidden")} onSelect={() => void navigate({ to })}>
            {name}
          </Menu.Item>
        ))}
        <Tenants />
        <Menu.RadioGroup value={preferences?.scheme ?? "auto"} onValueChange={(to) => preferences?.setScheme(to as Preferences["scheme"])}>
          {(["auto", "light", "dark"] as const).map((scheme) => (
            <Menu.RadioItem key={scheme} value={scheme} className={ITEM}>
              <span className="w-5">
                <Menu.ItemIndicator>✓</Menu.ItemIndicator>
              </span>
              {words.schemes[scheme]}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Separator className="my-1 h-px bg-line" />
        <Menu.RadioGroup value={language} onValueChange={(to) => preferences?.setLanguage(to as Preferences["language"])}>
          {(["en", "zh-CN"] as const).map((one) => (
            <Menu.RadioItem key={one} value={one} lang={one} className={ITEM}>
              <span className="w-5">
                <Menu.ItemIndicator>✓</Menu.ItemIndicator>
              </span>
              {words.languages[one]}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Separator className="my-1 h-px bg-line" />
        <Menu.Item className={ITEM} onSelect={onFind}>
          {words.frame.find}
        </Menu.Item>
        <Menu.Item className={ITEM} onSelect={onKeys}>
          {words.keys.title}
        </Menu.Item>
        <Menu.Item className={ITEM} onSelect={signOut}>
          {words.frame.signOut}
        </Menu.Item>
      </Menu.Content>
    </Menu.Root>
  );
}

/** The other tenants, for owners. */
function Tenants() {
  const words = useWords().frame;
  const { me, goTo } = useWire();
  const may = useMay("owner") && hasSession();
  const tenants = useTenants().data ?? [];
  const others = tenants.filter(({ id, enabled }) => enabled && id !== me.tenant_id);
  return may && others.length > 0 ? (
    <Menu.Group aria-label={words.tenants}>
      <Menu.Label className="px-2 py-1 text-small text-muted">{words.tenants}</Menu.Label>
      {others.map(({ id, name, slug }) => (
        // What it comes to stands on the page that shows tenants.
        <Menu.Item key={id} className={ITEM} onSelect={() => void goTo(slug).catch(() => undefined)}>
          {name || slug}
        </Menu.Item>
      ))}
      <Menu.Separator className="my-1 h-px bg-line" />
    </Menu.Group>
  ) : null;
}
