import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Button } from "../ui/button.tsx";
import { Empty, PageHead } from "../ui/page.tsx";
import { Problem } from "../ui/problem.tsx";
import { Sign } from "../ui/sign.tsx";
import { Actions, Cell, Row, Table } from "../ui/table.tsx";
import { When } from "../ui/when.tsx";
import { useTenants } from "../wire/queries.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../wire/types.ts";
import { useWire } from "../wire/use-wire.ts";
import { useWords } from "../words/use-words.ts";
import { useWebhooks } from "./queries.ts";

const SAMPLE = `[[gateway.webhooks]]
url = "https://chat.example.org/pintle"
events = ["approval.created", "breaker.tripped"]
secret_env = "CHAT_SECRET"`;

/** List webhook endpoints and undelivered events, and retry them. */
export function WebhooksPart() {
  const words = useWords().settings.webhooks;
  const found = useWebhooks();
  const queries = useQueryClient();
  const { connection } = useWire();
  const [told, setTold] = useState<number>();
  const retry = useMutation({
    mutationFn: (id: string) => connection.request("webhooks.retry", { id }),
    onSuccess: async ({ retried }) => {
      setTold(retried);
      await queries.invalidateQueries({ queryKey: ["settings", "webhooks"] });
    },
  });
  const { endpoints = [], deliveries = [] } = found.data ?? {};
  const failed = deliveries.filter(({ failedAt }) => failedAt !== null).length;
  return (
    <>
      <PageHead title={words.title} answer={found.data === undefined ? words.loading : words.answer(endpoints.length, deliveries.length - failed, failed)} />
      {found.error !== null && <Problem error={found.error} retry={() => void found.refetch()} />}
      {retry.error !== null && <Problem error={retry.error} />}
      <p role="status" className="text-muted">
        {told !== undefined && words.retried(told)}
      </p>
      {found.data !== undefined && endpoints.length === 0 && (
        <Empty title={words.empty}>
          <p className="mb-2">{words.emptyAbout}</p>
          <pre tabIndex={0} role="region" aria-label={words.sample} className="overflow-x-auto rounded bg-raised p-3 text-text">
            {SAMPLE}
          </pre>
        </Empty>
      )}
      {endpoints.length > 0 && <Endpoints endpoints={endpoints} busy={retry.isPending} onRetry={retry.mutate} />}
      {deliveries.length > 0 && (
        <>
          <h2 className="mt-6 mb-2 text-large font-semibold">{words.deliveries}</h2>
          <Deliveries deliveries={deliveries} endpoints={endpoints} busy={retry.isPending} onRetry={retry.mutate} />
        </>
      )}
    </>
  );
}

interface Retry {
  readonly busy: boolean;
  readonly onRetry: (id: string) => void;
}

function Endpoints({ endpoints, busy, onRetry }: Retry & { endpoints: readonly WebhookEndpoint[] }) {
  const all = useWords();
  const words = all.settings.webhooks;
  const tenants = useTenants().data ?? [];
  const of = (tenant: string | null): string => (tenant === null ? words.everyTenant : (tenants.find(({ id, slug }) => id === tenant || slug === tenant)?.name ?? tenant));
  return (
    <Table label={words.endpoints} head={[words.endpoint, words.events, words.tenant, words.state, all.actions]}>
      {endpoints.map((one) => (
        <Row key={one.id} name={one.url}>
          <Cell>
            <span className="font-mono">{one.url}</span>
          </Cell>
          <Cell name={words.events}>{one.events.length === 0 ? words.everyEvent : one.events.join(", ")}</Cell>
          <Cell name={words.tenant}>{of(one.tenant)}</Cell>
          <Cell name={words.state}>
            {one.stoppedAt !== null ? (
              <>
                <Sign kind="block" word={words.stopped} />{" "}
                <span className="text-small text-muted">
                  <When at={one.stoppedAt} />
                </span>
              </>
            ) : one.failed > 0 ? (
              <Sign kind="error" word={words.failedCount(one.failed)} />
            ) : one.waiting > 0 ? (
              <Sign kind="ask" word={words.waitingCount(one.waiting)} />
            ) : (
              <Sign kind="allow" word={words.told} />
            )}
          </Cell>
          <Actions>
            {(one.failed > 0 || one.waiting > 0 || one.stoppedAt !== null) && (
              <Button disabled={busy} aria-label={words.which(words.retryAll, one.url)} onClick={() => onRetry(one.id)}>
                {words.retryAll}
              </Button>
            )}
          </Actions>
        </Row>
      ))}
    </Table>
  );
}

function Deliveries({ deliveries, endpoints, busy, onRetry }: Retry & { deliveries: readonly WebhookDelivery[]; endpoints: readonly WebhookEndpoint[] }) {
  const all = useWords();
  const words = all.settings.webhooks;
  return (
    <Table label={words.deliveries} head={[words.event, words.endpoint, words.attempts, words.error, all.actions]}>
      {deliveries.map((one) => (
        <Row key={one.id} name={one.id}>
          <Cell>
            <span className="block font-semibold">{one.event}</span>
            <span className="text-small text-muted">
              <When at={one.at} />
            </span>
          </Cell>
          <Cell name={words.endpoint}>
            <span className="font-mono">{endpoints.find(({ id }) => id === one.endpointId)?.url ?? one.endpointId}</span>
          </Cell>
          <Cell name={words.attempts}>
            <span>
              {one.attempts}
              {one.failedAt === null && one.nextAt !== null && (
                <span className="text-muted">
                  {" "}
                  · {words.next} <When at={one.nextAt} />
                </span>
              )}
            </span>
          </Cell>
          <Cell name={words.error}>
            <span>
              {one.failedAt !== null && <Sign kind="error" word={words.gaveUp} />} {one.error ?? "–"}
            </span>
          </Cell>
          <Actions>
            <Button disabled={busy} aria-label={words.which(words.retry, one.event)} onClick={() => onRetry(one.id)}>
              {words.retry}
            </Button>
          </Actions>
        </Row>
      ))}
    </Table>
  );
}
