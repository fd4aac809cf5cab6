import { Link } from "@tanstack/react-router";

import { Card } from "../ui/page.tsx";
import { Button } from "../ui/button.tsx";
import { useMay } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { STARTERS, type Template, TEMPLATES } from "./templates.ts";

/** The hooks that a form can begin with. */
export function TemplateChoice({ onChoose }: { onChoose: (template: Template | undefined) => void }) {
  const words = useWords().rules;
  return (
    <div role="group" aria-label={words.begin} className="mb-4 flex flex-wrap items-center gap-2">
      <span className="text-muted">{words.begin}</span>
      {TEMPLATES.map((template) => (
        <Button key={template} title={words.templates[template].about} onClick={() => onChoose(template)}>
          {words.templates[template].title}
        </Button>
      ))}
      <Button onClick={() => onChoose(undefined)}>{words.beginEmpty}</Button>
    </div>
  );
}

/** Three hooks to begin with, for a page that has none. */
export function Starters() {
  const words = useWords().rules.templates;
  const may = useMay("admin");
  return (
    <ul className="my-3 grid grid-cols-3 gap-3 max-md:grid-cols-1">
      {STARTERS.map((template) => (
        <li key={template}>
          <Card className="h-full bg-ground! p-3">
            <p className="font-semibold text-text">
              {may ? (
                <Link to="/hooks/new" search={{ from: template } as never} className="text-accent underline">
                  {words[template].title}
                </Link>
              ) : (
                words[template].title
              )}
            </p>
            <p>{words[template].about}</p>
          </Card>
        </li>
      ))}
    </ul>
  );
}
