//! Every hook, in the order in which it runs: immutable, replaced whole.

use std::sync::Arc;

use crate::checkpoint::{CHECKPOINT_COUNT, CHECKPOINTS, CheckpointKind, Facts};
use crate::hook::{Hook, State};
use crate::matcher::Respond;

/// The hooks in force. A hook's number in the roster is stable for the roster's life.
#[derive(Debug, Default)]
pub struct Roster {
    hooks: Vec<Arc<Hook>>,
    rows: [Vec<usize>; CHECKPOINT_COUNT],
}

impl Roster {
    /// Puts `hooks` in running order: native before process, then lower priority first, then by name, bytewise.
    pub fn new(hooks: Vec<Hook>) -> Self {
        let mut hooks: Vec<Arc<Hook>> = hooks.into_iter().map(Arc::new).collect();
        hooks.sort_by(|a, b| (a.family, a.priority, a.name.as_str()).cmp(&(b.family, b.priority, b.name.as_str())));
        let mut rows: [Vec<usize>; CHECKPOINT_COUNT] = Default::default();
        for (i, hook) in hooks.iter().enumerate() {
            for kind in hook.stages.kinds() {
                rows[kind as usize].push(i);
            }
        }
        Self { hooks, rows }
    }

    /// All hooks, in running order.
    pub fn hooks(&self) -> &[Arc<Hook>] {
        &self.hooks
    }

    /// The hook with the number `i`.
    pub fn hook(&self, i: usize) -> &Arc<Hook> {
        &self.hooks[i]
    }

    /// The numbers of the hooks that are registered for `kind`, in running order.
    pub fn at(&self, kind: CheckpointKind) -> &[usize] {
        &self.rows[kind as usize]
    }

    /// Whether any hook is asked at `kind`, or would be and cannot work: what happens there waits for somebody.
    pub fn waits_at(&self, kind: CheckpointKind) -> bool {
        self.at(kind).iter().any(|number| match self.hooks[*number].state {
            State::Armed | State::Broken(_) => true,
            State::Disabled | State::Untrusted => false,
        })
    }

    /// Pairs of hooks where the first may answer for a tool before the second, which also matches it, is asked:
    /// for the warning in listings. `tools` are the names to try.
    pub fn shadowed<'a>(&'a self, tools: &[&str]) -> Vec<(&'a Hook, &'a Hook)> {
        let row: Vec<&Arc<Hook>> = self.at(CheckpointKind::BeforeTool).iter().map(|i| &self.hooks[*i]).collect();
        let mut pairs = Vec::new();
        for (i, first) in row.iter().enumerate().filter(|(_, hook)| hook.state == State::Armed) {
            for later in row.iter().skip(i + 1).filter(|hook| hook.state == State::Armed) {
                let both = |tool: &&&str| {
                    let facts = Facts { tool: Some((tool, tool)) };
                    first.matches(&facts) && first.respond.grants(tool) && later.matches(&facts)
                };
                // A hook that may answer anything says nothing about its intent; only a grant that was written does.
                if matches!(first.respond, Respond::Only { .. }) && tools.iter().any(|tool| both(&tool)) {
                    pairs.push((&***first, &***later));
                }
            }
        }
        pairs
    }

    /// The checkpoints that have at least one hook, each with its chain in running order.
    pub fn chains(&self) -> impl Iterator<Item = (CheckpointKind, &[usize])> {
        CHECKPOINTS.iter().map(|row| (row.kind, self.at(row.kind))).filter(|(_, row)| !row.is_empty())
    }
}
