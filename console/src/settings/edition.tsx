import { Card, PageHead } from "../ui/page.tsx";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";

/** Which edition this is, and what follows from it. */
export function EditionPart() {
  const words = useWords().settings;
  const { me } = useWire();
  const facts: readonly (readonly [string, string])[] = [
    [words.edition.commands, words.edition.commandsAre[me.edition]],
    [words.edition.tenants, words.edition.tenantsAre[me.edition]],
    [words.edition.secrets, words.edition.secretsAre[me.edition]],
    [words.edition.version, `${me.server.name} ${me.server.version}`],
    [words.edition.protocol, String(me.protocol)],
  ];
  return (
    <>
      <PageHead title={words.parts.edition} answer={words.edition.answer[me.edition]} />
      <Card className="p-4">
        <dl className="grid grid-cols-[144px_minmax(0,1fr)] gap-x-3 gap-y-2 max-sm:grid-cols-1 max-sm:gap-y-0">
          {facts.map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-muted">{name}</dt>
              <dd className="max-sm:mb-2">{value}</dd>
            </div>
          ))}
        </dl>
        <p className="mt-3 text-muted">{words.edition.how}</p>
      </Card>
    </>
  );
}
