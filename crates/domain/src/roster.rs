//! Every hook, in the order in which it runs: immutable, replaced whole.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::checkpoint::{CHECKPOINT_COUNT, CHECKPOINTS, CheckpointKind, Facts};
use crate::hook::{Family, Hook, HookState};

mod names;

use names::Names;

/// Who runs first: native before process before command before agent; then lower priority first and by name, bytewise,
/// but in the agent family higher priority first, then by age, then by id. Source: the published order of hooks.
pub fn running_order(a: &Hook, b: &Hook) -> Ordering {
    let age = |hook: &Hook| hook.stored.as_ref().map(|stored| (stored.created_at.clone(), stored.id.clone()));
    a.family.cmp(&b.family).then_with(|| match a.family {
        Family::Native | Family::Process | Family::Command => {
            (a.priority, a.name.as_str()).cmp(&(b.priority, b.name.as_str()))
        }
        Family::Rule => b.priority.cmp(&a.priority).then_with(|| age(a).cmp(&age(b))),
        // They stand in the order of their skills.
        Family::Skill => Ordering::Equal,
    })
}

/// The hooks in force. A hook's number in the roster is stable for the roster's life.
#[derive(Debug, Default)]
pub struct Roster {
    hooks: Vec<Arc<Hook>>,
    rows: [Vec<usize>; CHECKPOINT_COUNT],
    names: Names,
}

impl Roster {
    /// Puts `hooks` in running order; those that [`running_order`] does not tell apart stay as they come.
    pub fn new(hooks: Vec<Hook>) -> Self {
        Self::of(hooks.into_iter().map(Arc::new).collect())
    }

    /// The roster of hooks that others hold, too.
    pub fn of(mut hooks: Vec<Arc<Hook>>) -> Self {
        hooks.sort_by(|a, b| running_order(a, b));
        let mut rows: [Vec<usize>; CHECKPOINT_COUNT] = Default::default();
        for (i, hook) in hooks.iter().enumerate() {
            for kind in hook.stages.kinds() {
                rows[kind as usize].push(i);
            }
        }
        Self { hooks, rows, names: Names::default() }
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

    /// For each place of the row of `kind`, whether the matcher of its hook lets `facts` pass; nothing where each
    /// hook is to be asked by itself.
    pub(crate) fn matching(&self, kind: CheckpointKind, facts: &Facts<'_>) -> Option<Arc<[bool]>> {
        let row = self.at(kind);
        self.names.of(kind, (facts, row.len()), |place| self.hooks[row[place]].matches(facts))
    }

    /// Whether any hook is asked at `kind`, or would be and cannot work: what happens there waits for somebody.
    pub fn waits_at(&self, kind: CheckpointKind) -> bool {
        self.at(kind).iter().any(|number| match self.hooks[*number].state {
            HookState::Armed | HookState::Broken(_) | HookState::Tripped { .. } => true,
            HookState::Disabled | HookState::Untrusted => false,
        })
    }

    /// The hooks that may answer for a tool before others, which also match it, are asked; each with those others: for
    /// the warning in listings. `tools` are the names to try. Hooks that are asked at `before_tool` only because
    /// a twin was named do not count.
    pub fn shadowed<'a>(&'a self, tools: &[&str]) -> Vec<(&'a Hook, Vec<&'a Hook>)> {
        let at = CheckpointKind::BeforeTool;
        let counts =
            |hook: &&Hook| hook.state == HookState::Armed && hook.stages.get(at).is_some_and(|stage| !stage.paired);
        let row: Vec<&Hook> = self.at(at).iter().map(|i| &*self.hooks[*i]).filter(counts).collect();
        let mut shadowed = Vec::new();
        for (i, first) in row.iter().enumerate() {
            let answers = |tool: &&&str| first.matches(&Facts::of_tool(tool)) && first.respond.grants(tool);
            let tools: Vec<&&str> = tools.iter().filter(answers).collect();
            let too = |later: &&&Hook| tools.iter().any(|tool| later.matches(&Facts::of_tool(tool)));
            let others: Vec<&Hook> = row[i + 1..].iter().filter(too).copied().collect();
            if !others.is_empty() {
                shadowed.push((*first, others));
            }
        }
        shadowed
    }

    /// The checkpoints that have at least one hook, each with its chain in running order.
    pub fn chains(&self) -> impl Iterator<Item = (CheckpointKind, &[usize])> {
        CHECKPOINTS.iter().map(|row| (row.kind, self.at(row.kind))).filter(|(_, row)| !row.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hook;

    /// Who of `hooks` is shadowed by whom, as `FIRST>LATER LATER`.
    fn check(hooks: Vec<Hook>, expected: &[&str]) {
        let roster = Roster::new(hooks);
        let shadowed = roster.shadowed(&["exec", "read"]);
        let names = |hooks: &[&Hook]| hooks.iter().map(|hook| hook.name.to_string()).collect::<Vec<_>>().join(" ");
        let shadowed: Vec<String> =
            shadowed.iter().map(|(first, later)| format!("{}>{}", first.name, names(later))).collect();
        assert_eq!(shadowed, expected);
    }

    #[test]
    fn who_may_answer_before_another_is_asked_shadows_it() {
        let at = |name: &str| hook(name, &[CheckpointKind::BeforeTool, CheckpointKind::AfterTool]);
        check(vec![at("a"), at("b"), at("c")], &["a>b c", "b>c"]);
        check(vec![at("a").responding(&["exec"]), at("b")], &["a>b"]);
        check(vec![at("a").responding(&[]), at("b").responding(&["weather"]), at("c")], &[]);
        check(vec![at("a").matching("^exec$"), at("b").matching("^read$"), at("c").matching("e")], &["a>c", "b>c"]);
        check(vec![at("a").responding(&["exec"]), at("b").matching("^read$")], &[]);
        check(vec![at("a").paired(), at("b"), at("c").paired()], &[]);
        check(vec![at("a").state(HookState::Disabled), at("b"), at("c").state(HookState::Untrusted)], &[]);
        check(vec![hook("a", &[CheckpointKind::AfterTool]), at("b")], &[]);
        let many: Vec<Hook> = (0..200).map(|at| hook(&format!("h{at:03}"), &[CheckpointKind::BeforeTool])).collect();
        assert_eq!(Roster::new(many).shadowed(&["exec"]).len(), 199, "one finding for each hook that may answer");
    }
}
