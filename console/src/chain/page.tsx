import { useMutation } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";

import { Button } from "../ui/button.tsx";
import { CodeField } from "../ui/code-field.tsx";
import { Field, Input, Select } from "../ui/field.tsx";
import { Card, Empty, Page, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { Sign } from "../ui/sign.tsx";
import { useAgents } from "../wire/queries.ts";
import { type ChainLine, EVENTS, type HookEvent, type JsonObject, type Params } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";

/** Who would be asked about a call, in which order, and who not and why. */
export function ChainPage() {
  const words = useWords();
  const { connection } = useWire();
  const agents = useAgents().data ?? [];
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const [event, setEvent] = useState<HookEvent>("pre_tool_use");
  const [agent, setAgent] = useState(search["agent"] ?? "");
  const [tool, setTool] = useState("exec");
  const [input, setInput] = useState('{\n  "command": "git push --force"\n}');
  const [bad, setBad] = useState<string>();
  const chain = useMutation({ mutationFn: async (params: Params<"hooks.chain">) => (await connection.request("hooks.chain", params)).chain });
  const hasTool = event !== "session_start" && event !== "user_prompt_submit" && event !== "stop";
  const ask = (submitted: FormEvent): void => {
    submitted.preventDefault();
    setBad(undefined);
    try {
      const read: unknown = hasTool ? JSON.parse(input) : {};
      if (typeof read !== "object" || read === null || Array.isArray(read)) {
        setBad(words.test.notObject);
        return;
      }
      chain.mutate({
        event,
        ...(agent === "" ? {} : { agentId: agent }),
        ...(hasTool && tool !== "" ? { toolName: tool, toolInput: read as JsonObject } : {}),
      });
    } catch (error) {
      setBad(words.test.notJson(error instanceof Error ? error.message : ""));
    }
  };
  return (
    <Page>
      <PageHead title={words.chain.title} answer={chain.data === undefined ? words.chain.about : words.chain.answer(chain.data.filter((row) => row.wouldRun).length, chain.data.length)} />
      <div className="grid grid-cols-[320px_minmax(0,1fr)] items-start gap-6 max-lg:grid-cols-1">
        <Card className="p-4">
          <form className="flex flex-col gap-3" onSubmit={ask}>
            <Field label={words.hooks.fields.event}>
              {(about) => (
                <Select {...about} value={event} onChange={(change) => setEvent(EVENTS.find((one) => one === change.target.value) ?? event)}>
                  {EVENTS.map((one) => (
                    <option key={one}>{one}</option>
                  ))}
                </Select>
              )}
            </Field>
            <Field label={words.chain.agent}>
              {(about) => (
                <Select {...about} value={agent} onChange={(change) => setAgent(change.target.value)}>
                  <option value="">{words.chain.firstAgent}</option>
                  {agents.map(({ id }) => (
                    <option key={id}>{id}</option>
                  ))}
                </Select>
              )}
            </Field>
            {hasTool && (
              <>
                <Field label={words.test.tool}>{(about) => <Input {...about} className="font-mono" value={tool} onChange={(change) => setTool(change.target.value)} />}</Field>
                <div>
                  <p className="mb-1 font-medium">{words.test.input}</p>
                  <CodeField language="json" label={words.test.input} value={input} onChange={setInput} />
                  {bad !== undefined && <p className="text-small text-block">{bad}</p>}
                </div>
              </>
            )}
            <div>
              <Button look="primary" type="submit" disabled={chain.isPending}>
                {words.chain.ask}
              </Button>
            </div>
          </form>
        </Card>
        <div aria-live="polite">
          {chain.error !== null && <Problem error={chain.error} />}
          {chain.data !== undefined && (chain.data.length === 0 ? <Empty title={words.chain.nobody}>{words.chain.nobodyAbout}</Empty> : <Rows rows={chain.data} />)}
        </div>
      </div>
    </Page>
  );
}

function Rows({ rows }: { rows: readonly ChainLine[] }) {
  const words = useWords();
  return (
    <Card className="overflow-hidden">
      <ol>
        {rows.map((row, at) => (
          <li key={row.hookId} className="grid grid-cols-[24px_112px_minmax(0,1fr)] items-start gap-3 border-b border-line px-3 py-2 last:border-b-0">
            <span className="text-muted">{at + 1}</span>
            <Sign kind={row.wouldRun ? "allow" : row.state === "tripped" ? "tripped" : row.state === "broken" ? "error" : "off"} word={row.wouldRun ? words.chain.runs : words.chain.runsNot} />
            <span className="min-w-0">
              <Link to="/hooks/$id" params={{ id: row.hookId }} className="font-semibold hover:underline">
                {row.name || row.hookId}
              </Link>
              <span className="block text-muted">
                {words.hooks.scopes[row.scope]} · {words.hooks.priorityOf(row.priority)}
                {row.reason !== "" && ` · ${row.reason}`}
              </span>
            </span>
          </li>
        ))}
      </ol>
    </Card>
  );
}
