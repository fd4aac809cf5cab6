//! Nodes: the processes that serve one database together, what each says of itself, and whose configuration counts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How often a node says that it is there.
pub const BEAT_EVERY: Duration = Duration::from_secs(3);

/// After so long without a word a node counts as gone: as long as the leases last that it had.
pub const GONE_AFTER: Duration = Duration::from_secs(10);

/// What a node says of itself. This is also its JSON in listings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    /// Which run of it: another one after each start.
    pub id: String,
    /// Which it is for people, the same after each start.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// The level of the schema that it knows.
    pub level: u32,
    /// Where it listens.
    pub addresses: Vec<String>,
    /// The turns that it works now.
    pub turns: u64,
    /// The digest of the whole configuration.
    pub config: String,
    /// The digest of what counts for each agent.
    pub agents: BTreeMap<String, String>,
    /// Which keys it works with; versions before say nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<NodeKeys>,
}

/// The ids of the keys that a node works with, and nothing of the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeKeys {
    /// Of the one that signs the audit chain.
    #[serde(default)]
    pub signing: Option<String>,
    /// Of the one that encrypts secrets, and seals.
    #[serde(default)]
    pub encryption: Option<String>,
}

/// A node that is there, as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenNode {
    /// What it says.
    pub state: NodeState,
    /// When it started, in milliseconds since 1970 by the clock of the database.
    pub since_ms: i64,
    /// How long it has been silent, in milliseconds.
    pub silent_ms: i64,
}

impl SeenNode {
    /// Whether it counts as there.
    pub fn is_there(&self) -> bool {
        u128::try_from(self.silent_ms).unwrap_or(0) < GONE_AFTER.as_millis()
    }
}

/// The digest of `agent` that counts among `nodes`: the one that most of those have that are there; of two with as many,
/// the one that was there first. None where no node has the agent.
pub fn in_force<'a>(nodes: &'a [SeenNode], agent: &str) -> Option<&'a str> {
    let mut found: BTreeMap<&str, (usize, i64)> = BTreeMap::new();
    for node in nodes.iter().filter(|node| node.is_there()) {
        let Some(digest) = node.state.agents.get(agent) else { continue };
        let (count, since) = found.entry(digest).or_insert((0, i64::MAX));
        (*count, *since) = (*count + 1, (*since).min(node.since_ms));
    }
    found.into_iter().max_by_key(|(_, (count, since))| (*count, std::cmp::Reverse(*since))).map(|(digest, _)| digest)
}

/// Why the node `me` takes no turns of `agent`: which digest it has, and which one counts. Nothing where it takes them.
pub fn differs<'a>(nodes: &'a [SeenNode], me: &'a NodeState, agent: &str) -> Option<(&'a str, &'a str)> {
    let (own, counts) = (me.agents.get(agent)?, in_force(nodes, agent)?);
    (own != counts).then_some((own.as_str(), counts))
}

/// What each node that is there, but the run `me`, does with other keys than `own`, a line each: what one of them signs and
/// seals the other does not know.
pub fn other_keys(nodes: &[SeenNode], (me, own): (&str, &NodeKeys)) -> Vec<String> {
    let shown = |kid: &Option<String>| kid.clone().unwrap_or_else(|| "none".to_owned());
    let mut lines = Vec::new();
    for node in nodes.iter().filter(|node| node.is_there() && node.state.id != me) {
        let Some(theirs) = &node.state.keys else { continue };
        let pairs = [
            ("signs the audit chain with the key", &theirs.signing, &own.signing, "PINTLE_AUDIT_SIGNING_KEY"),
            ("encrypts and seals with the key", &theirs.encryption, &own.encryption, "PINTLE_ENCRYPTION_KEY"),
        ];
        let differing = pairs.into_iter().filter(|(_, theirs, own, _)| theirs != own);
        lines.extend(differing.map(|(does, theirs, own, name)| {
            let (who, theirs, own) = (&node.state.name, shown(theirs), shown(own));
            format!("the node `{who}` {does} {theirs}, and this one with {own}: give all nodes the same {name}")
        }));
    }
    lines
}

/// The levels of schema of which nodes can serve one database together: their own and the next.
pub fn may_share(one: u32, other: u32) -> bool {
    one.abs_diff(other) <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_are_there_with_other_keys_are_named() {
        let keys = |signing: &str, encryption: Option<&str>| NodeKeys {
            signing: Some(signing.into()),
            encryption: encryption.map(str::to_owned),
        };
        let with = |id: &str, silent_ms: i64, keys: Option<NodeKeys>| {
            let state = NodeState { id: id.into(), name: format!("node {id}"), keys, ..NodeState::default() };
            SeenNode { state, since_ms: 0, silent_ms }
        };
        let own = keys("aaaa", Some("bbbb"));
        let check = |node: SeenNode, lines: &[&str]| {
            assert_eq!(other_keys(&[with("me", 0, None), node], ("me", &own)), lines);
        };
        let signs = "the node `node b` signs the audit chain with the key cccc, and this one with aaaa: give all nodes the \
                     same PINTLE_AUDIT_SIGNING_KEY";
        let seals = "the node `node b` encrypts and seals with the key none, and this one with bbbb: give all nodes the \
                     same PINTLE_ENCRYPTION_KEY";
        check(with("b", 0, Some(own.clone())), &[]);
        check(with("b", 0, Some(keys("cccc", Some("bbbb")))), &[signs]);
        check(with("b", 0, Some(keys("cccc", None))), &[signs, seals]);
        check(with("b", 60_000, Some(keys("cccc", None))), &[]);
        check(with("b", 0, None), &[]);
        check(with("me", 0, Some(keys("cccc", None))), &[]);
    }

    fn node(id: &str, since_ms: i64, silent_ms: i64, digest: &str) -> SeenNode {
        let agents = [("main".to_owned(), digest.to_owned())].into();
        SeenNode { state: NodeState { id: id.into(), agents, ..NodeState::default() }, since_ms, silent_ms }
    }

    #[test]
    fn what_most_nodes_have_counts_and_among_equals_what_was_there_first() {
        let check = |nodes: &[SeenNode], counts: Option<&str>| assert_eq!(in_force(nodes, "main"), counts);
        check(&[], None);
        check(&[node("a", 1, 0, "old"), node("b", 2, 0, "new")], Some("old"));
        check(&[node("a", 1, 10_000, "old"), node("b", 2, 9_999, "new")], Some("new"));
        check(&[node("a", 1, 0, "old"), node("b", 2, 0, "new"), node("c", 3, 0, "new")], Some("new"));
        assert_eq!(in_force(&[node("a", 1, 0, "old")], "other"), None);
    }

    #[test]
    fn a_node_that_differs_takes_no_turns_of_that_agent() {
        let nodes = [node("a", 1, 0, "old"), node("b", 2, 0, "new")];
        assert_eq!(differs(&nodes, &nodes[0].state, "main"), None);
        assert_eq!(differs(&nodes, &nodes[1].state, "main"), Some(("new", "old")));
        assert_eq!(differs(&nodes, &nodes[1].state, "other"), None);
        assert_eq!(differs(&[], &nodes[1].state, "main"), None, "nobody else has said anything yet");
    }

    #[test]
    fn one_level_apart_works_both_ways_and_two_do_not() {
        assert_eq!([1, 2, 3, 4, 5].map(|other| may_share(3, other)), [false, true, true, true, false]);
    }
}
