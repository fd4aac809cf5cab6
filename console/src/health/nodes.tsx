import { Name } from "../ui/name.tsx";
import { Sign } from "../ui/sign.tsx";
import { Cell, Row, Table } from "../ui/table.tsx";
import type { Node } from "../wire/types.ts";
import { useWords } from "../words/use-words.ts";

/** The processes that share the store. */
export function NodesCard({ nodes }: { nodes: readonly Node[] }) {
  const words = useWords().health.nodes;
  return (
    <>
      <h2 className="mt-6 mb-2 text-large font-semibold">{words.title}</h2>
      <Table label={words.title} head={[words.node, words.state, words.addresses, words.turns, words.version]}>
        {nodes.map((node) => (
          <Row key={node.id} name={node.name}>
            <Cell>
              <span className="font-semibold"><Name of={node.name} /></span>
              {node.self && <span className="ml-2 rounded bg-tint px-1.5 text-small text-accent">{words.self}</span>}
            </Cell>
            <Cell name={words.state}>
              <span>
                <Sign kind={node.online ? "allow" : "off"} word={node.online ? words.online : words.away} />
                {!node.online && <span className="text-small text-muted"> {words.silent(Math.round(node.silentMs / 1000))}</span>}
                {node.differs.length > 0 && <span className="block text-ask">{words.differs(node.differs.join(", "))}</span>}
              </span>
            </Cell>
            <Cell name={words.addresses}>
              <span className="font-mono">{node.addresses.join(", ") || "–"}</span>
            </Cell>
            <Cell name={words.turns}>{String(node.turns)}</Cell>
            <Cell name={words.version}>
              <span title={node.configDigest}>{words.versionOf(node.version, node.schemaLevel)}</span>
            </Cell>
          </Row>
        ))}
      </Table>
    </>
  );
}
