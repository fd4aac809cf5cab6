//! A hook: where it acts, on what, who answers, and what happens if nobody does.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::checkpoint::facts::Facts;
use crate::checkpoint::kind::{CHECKPOINT_COUNT, CHECKPOINTS, CheckpointKind, Duty};
use crate::checkpoint::runtime::RuntimeKind;
use crate::fault::Fault;
use crate::id::{AgentId, HookName};
use crate::matcher::{Matcher, RespondTools};
use crate::rule::RuleDetails;

/// A registered rule, validated and compiled.
#[derive(Clone, Debug)]
pub struct Hook {
    /// Its unique name.
    pub name: HookName,
    /// The family it belongs to; native hooks run before the others.
    pub family: Family,
    /// Where it was defined, such as `pintle.toml:12:1`.
    pub origin: String,
    /// Lower runs first; of the agent family, higher.
    pub priority: i32,
    /// Whether it can be asked at all.
    pub state: HookState,
    /// The scope: the agents and tenants whose turns the hook is about.
    pub scope: Scope,
    /// Which tools it is about; all when absent. Tools that it owns always count.
    pub matcher: Option<Matcher>,
    /// Which tools it may answer for.
    pub respond: RespondTools,
    /// Which runtime events it is told; all when absent.
    pub events: Option<BTreeSet<RuntimeKind>>,
    /// The stages: what the hook does at each checkpoint.
    pub stages: Stages,
    /// The details that the hook has beyond other hooks, if it is kept in a store.
    pub stored: Option<Arc<RuleDetails>>,
    /// The folder that files which it hands over lie in; none if it may hand over none.
    pub media_dir: Option<PathBuf>,
}

/// The family of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// A Rust trait object in this process.
    Native,
    /// A child that speaks JSON lines.
    Process,
    /// A command that is run for each event, as coding agents run theirs.
    Command,
    /// A rule in a store.
    #[serde(rename = "agent")]
    Rule,
    /// A text that a skill puts into the conversation.
    Skill,
}

impl Family {
    /// Every family, each at the place of its number.
    pub const ALL: [Self; 5] = [Self::Native, Self::Process, Self::Command, Self::Rule, Self::Skill];

    /// The word in listings and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Process => "process",
            Self::Command => "command",
            Self::Rule => "agent",
            Self::Skill => "skill",
        }
    }
}

/// The scope of a hook: the turns that it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Everyone's.
    #[default]
    Everyone,
    /// Those of these agents, and of every sub-agent that works for them.
    Agents(BTreeSet<AgentId>),
}

impl Scope {
    /// Whether it covers a turn of the first of `agents`, which works for the others. A host that does not say who
    /// acts is covered: a rule that cannot know applies.
    pub fn covers(&self, agents: &[AgentId]) -> bool {
        match self {
            Self::Everyone => true,
            Self::Agents(wanted) => agents.is_empty() || agents.iter().any(|agent| wanted.contains(agent)),
        }
    }
}

/// Whether a hook can be asked.
#[derive(Clone, Debug, PartialEq)]
pub enum HookState {
    /// It is asked.
    Armed,
    /// Switched off by its owner: recorded, not asked.
    Disabled,
    /// From a configuration that nobody accepted yet: recorded, not asked.
    Untrusted,
    /// Its circuit breaker is open: what it guards gets what it says for that case.
    Tripped {
        /// Since when, RFC 3339, UTC.
        since: String,
    },
    /// It cannot work: every call ends in this fault, so what it guards stays shut.
    Broken(Fault),
}

/// The time that a native or process observer may take for one event. Source: `hooks.defaults.observer_timeout_ms`.
pub const OBSERVER_TIMEOUT: Duration = Duration::from_millis(500);
/// The time that a rewriter or gate may take for one answer. Source: `hooks.defaults.interceptor_timeout_ms`.
pub const INTERCEPTOR_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that an approver may take for one answer. Source: `hooks.defaults.approval_timeout_ms`.
pub const APPROVAL_TIMEOUT: Duration = Duration::from_secs(60);

/// The work of a hook at one checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// The time that one call may take.
    pub timeout: Duration,
    /// The treatment of a fault.
    pub on_failure: OnFailure,
    /// Called only because its twin was named; its faults always continue.
    pub paired: bool,
}

impl Stage {
    /// The stage of a hook at `kind` that says nothing about it.
    pub fn default_at(kind: CheckpointKind) -> Self {
        let timeout = match kind.duty() {
            Duty::Observer => OBSERVER_TIMEOUT,
            Duty::Gate | Duty::Rewriter | Duty::Injector => INTERCEPTOR_TIMEOUT,
            Duty::Approver => APPROVAL_TIMEOUT,
        };
        Self { timeout, on_failure: OnFailure::default_at(kind), paired: false }
    }
}

/// The treatment of a fault: the answer that it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The duty's refusal: deny, block, refuse.
    Close,
    /// Go on with the value as it was before this hook.
    Continue,
    /// End the turn.
    AbortTurn,
}

impl OnFailure {
    /// The word of what a fault becomes at `kind`, as configuration and listings have it.
    pub fn word_at(self, kind: CheckpointKind) -> &'static str {
        match (self, kind.duty()) {
            (Self::Close, Duty::Gate) => "block",
            (Self::Close, Duty::Approver) => "refuse",
            (Self::Close, Duty::Rewriter | Duty::Observer | Duty::Injector) => "deny",
            (Self::Continue, _) => "continue",
            (Self::AbortTurn, _) => "abort_turn",
        }
    }

    /// The treatment of a fault at `kind` unless the hook says otherwise.
    pub fn default_at(kind: CheckpointKind) -> Self {
        match (kind, kind.duty()) {
            (CheckpointKind::BeforeTool, _) | (_, Duty::Gate | Duty::Approver) => Self::Close,
            (_, Duty::Observer | Duty::Rewriter | Duty::Injector) => Self::Continue,
        }
    }
}

/// The stages of a hook, by checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stages([Option<Stage>; CHECKPOINT_COUNT]);

impl Stages {
    /// Adds or replaces a stage.
    pub fn set(&mut self, kind: CheckpointKind, stage: Stage) {
        self.0[kind as usize] = Some(stage);
    }

    /// The stage at `kind`, if the hook acts there.
    pub fn get(&self, kind: CheckpointKind) -> Option<&Stage> {
        self.0[kind as usize].as_ref()
    }

    /// The checkpoints it acts at, in the order of a turn.
    pub fn kinds(&self) -> impl Iterator<Item = CheckpointKind> + '_ {
        CHECKPOINTS.iter().map(|row| row.kind).filter(|kind| self.get(*kind).is_some())
    }
}

impl Hook {
    /// Whether its matcher lets it act on `facts`; owning the tool counts too, and the caller knows that.
    pub fn matches(&self, facts: &Facts<'_>) -> bool {
        // Where a sub-agent begins or ends, the tool is only the way to it.
        let tool = if self.family == Family::Rule || facts.depth.is_none() { facts.tool } else { None };
        match (&self.matcher, tool, self.family) {
            // To the matcher of a rule the name of no tool is empty.
            (Some(matcher), Some(_), _) | (Some(matcher), None, Family::Rule) => matcher.matches(facts),
            // Elsewhere a matcher limits the tool stages only.
            (Some(_), None, Family::Native | Family::Process | Family::Command | Family::Skill) | (None, _, _) => true,
        }
    }
}
