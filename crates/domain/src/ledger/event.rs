//! What happened in a ledger, for records and listings.

use std::sync::Arc;
use std::time::Duration;

use super::{MsgId, Provenance};
use crate::checkpoint::CheckpointKind;
use crate::hook::{Family, Hook, HookState, Scope, Stages};
use crate::id::HookName;
use crate::matcher::RespondTools;
use crate::message::Role;
use crate::record::{HookOutcome, NotRun, Record};
use crate::skill::{SkillHook, Skills, Timing};
use crate::verdict::VerdictKind;

/// Bytes of text that make a token, about: the usual share for English.
const BYTES_A_TOKEN: usize = 4;

/// The tokens of a text of so many bytes, about.
pub fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_A_TOKEN)
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum LedgerEvent {
    /// A point was reached for which hooks are registered.
    Injected {
        /// Which.
        timing: Timing,
        /// The round that it belongs to.
        round: u32,
        /// The call of a tool that it was about.
        call: Option<String>,
        /// The first call of a model that sees what went in; 0 is the planning call.
        first_call: u32,
        /// One line for every hook of that timing, in order.
        lines: Vec<InjectionOutcome>,
    },
    /// Texts were taken out.
    Removed {
        /// When they had gone in.
        timing: Timing,
        /// One line for each.
        lines: Vec<Removal>,
    },
    /// A prompt of the host's own went in.
    PromptInjected {
        /// The message.
        message: Arc<Provenance>,
        /// The length of the text, in bytes.
        bytes: usize,
    },
    /// It was taken out.
    PromptRemoved(Removal),
}

/// The outcome of one hook at its point.
#[derive(Clone, Debug, PartialEq)]
pub struct InjectionOutcome {
    /// Its place in [`Skills::hooks`].
    pub hook: usize,
    /// The message that it became, or why none.
    pub went: Result<Arc<Provenance>, NotInjectedReason>,
}

/// Why a text did not go in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotInjectedReason {
    /// The request switched its skill off.
    Disabled,
    /// It is about other tools than this one.
    Filter {
        /// The names of the tool that was called.
        names: Vec<String>,
    },
}

/// A message that was taken out.
#[derive(Clone, Debug, PartialEq)]
pub struct Removal {
    /// Which.
    pub message: Arc<Provenance>,
    /// The first and the last call that saw it, if any did.
    pub seen: Option<(u32, u32)>,
    /// The effect of the removal on the requests that follow.
    pub wire: RemovalEffect,
}

/// The effect on the requests that follow of taking a text out of its list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemovalEffect {
    /// It is not sent again.
    #[default]
    Removed,
    /// It is sent again, with the provider's mark that its time is over.
    Expired,
    /// It is sent again: everything behind it is bound to it.
    Frozen,
}

impl Timing {
    /// Its checkpoint.
    pub fn checkpoint(self) -> CheckpointKind {
        match self {
            Self::AfterUserInput => CheckpointKind::AfterUserInput,
            Self::BeforePlanning => CheckpointKind::BeforePlanning,
            Self::BeforeFirstAgent => CheckpointKind::BeforeFirstAgent,
            Self::BeforeEachAgent => CheckpointKind::BeforeEachAgent,
            Self::AfterToolCall => CheckpointKind::AfterToolCall,
        }
    }
}

impl LedgerEvent {
    /// Notes what became of each text that was taken out; a ledger does not know how its list is sent.
    pub fn settle(&mut self, wire: impl Fn(MsgId) -> RemovalEffect) {
        let settled = |removal: &mut Removal| removal.wire = removal.message.msg_id.map(&wire).unwrap_or_default();
        match self {
            Self::Injected { .. } | Self::PromptInjected { .. } => {}
            Self::Removed { lines, .. } => lines.iter_mut().for_each(settled),
            Self::PromptRemoved(removal) => settled(removal),
        }
    }

    /// The checkpoint at which it happened, and the lines of evidence: one for each hook.
    pub fn records(&self, skills: &Skills) -> (CheckpointKind, Vec<Record>) {
        match self {
            Self::Injected { timing, first_call, lines, .. } => {
                let line = |line: &InjectionOutcome| {
                    let hook = &skills.hooks[line.hook];
                    Record::of(&hook.registered(), timing.checkpoint(), outcome(hook, line, *first_call))
                };
                (timing.checkpoint(), lines.iter().map(line).collect())
            }
            Self::Removed { timing, lines } => {
                let line = |removal: &Removal| {
                    let from = &removal.message;
                    let hook = skills.hooks.iter().find(|hook| {
                        Some(&hook.name) == from.hook.as_ref() && Some(&hook.skill) == from.skill.as_ref()
                    })?;
                    let said = said(removal.to_string());
                    Some(Record::of(&hook.registered(), timing.checkpoint(), said))
                };
                (timing.checkpoint(), lines.iter().filter_map(line).collect())
            }
            Self::PromptInjected { message, .. } | Self::PromptRemoved(Removal { message, .. }) => {
                let planning = message.prompt == Some(super::HostPrompt::PlanningPrompt);
                let at = if planning { CheckpointKind::BeforePlanning } else { CheckpointKind::BeforeEachAgent };
                (at, Vec::new())
            }
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Injected { .. } => "hook_injected",
            Self::Removed { .. } => "hook_removed",
            Self::PromptInjected { .. } => "prompt_injected",
            Self::PromptRemoved(_) => "prompt_removed",
        }
    }

    /// The event in words for a person, beside the lines of hooks: the texts that went in are those of one snapshot.
    pub fn text(&self, skills: &Skills) -> Option<String> {
        match self {
            Self::Injected { .. } => Some(format!("snapshot {}", skills.hash)),
            Self::Removed { .. } => None,
            Self::PromptInjected { message, bytes } => Some(format!("{}, {}", named(message), size(*bytes))),
            Self::PromptRemoved(removal) => Some(format!("{}, {removal}", named(&removal.message))),
        }
    }
}

fn named(message: &Provenance) -> &'static str {
    message.prompt.map_or("prompt", super::HostPrompt::word)
}

fn said(reason: String) -> HookOutcome {
    HookOutcome::Said { word: VerdictKind::Inject, reason: Some(reason), took: Duration::ZERO }
}

fn size(bytes: usize) -> String {
    let tokens = tokens(bytes);
    let (byte, token) = (if bytes == 1 { "byte" } else { "bytes" }, if tokens == 1 { "token" } else { "tokens" });
    format!("{bytes} {byte}, about {tokens} {token}")
}

fn call(number: u32) -> String {
    if number == 0 { "the planning call".to_owned() } else { format!("call {number}") }
}

fn outcome(hook: &SkillHook, line: &InjectionOutcome, first_call: u32) -> HookOutcome {
    match &line.went {
        Ok(from) => {
            let id = from.msg_id.map(|id| id.to_string()).unwrap_or_default();
            let role = match hook.role.role() {
                Role::System => "system",
                Role::User | Role::Assistant | Role::Tool => "user",
            };
            said(format!("{id} as {role}, {}, from {} on", size(hook.content.len()), call(first_call)))
        }
        Err(NotInjectedReason::Disabled) => HookOutcome::NotRun(NotRun::Disabled),
        Err(NotInjectedReason::Filter { names }) => {
            // Mostly the model wrote the tool's own name.
            let mut names = names.clone();
            names.dedup();
            let (pattern, value) = (hook.tool_filter.join(", ").into(), names.join(", ").into());
            HookOutcome::NotRun(NotRun::Matcher { pattern, value })
        }
    }
}

impl std::fmt::Display for Removal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(id) = self.message.msg_id {
            write!(f, "{id} ")?;
        }
        match self.seen {
            None => f.write_str("taken out, seen by no call")?,
            Some((first, last)) if first == last => write!(f, "taken out, seen by {}", call(first))?,
            Some((first, last)) => write!(f, "taken out, seen by {} to {}", call(first), call(last))?,
        }
        f.write_str(match self.wire {
            RemovalEffect::Removed => "",
            RemovalEffect::Expired => "; expired on the wire",
            RemovalEffect::Frozen => "; frozen on the wire",
        })
    }
}

impl SkillHook {
    /// The hook as records and listings know it.
    pub fn registered(&self) -> Hook {
        Hook {
            name: HookName::from(self.id().as_str()),
            family: Family::Skill,
            origin: format!("skill {}", self.skill),
            priority: 0,
            state: HookState::Armed,
            scope: Scope::Everyone,
            matcher: None,
            respond: RespondTools::Any,
            events: None,
            stages: Stages::default(),
            stored: None,
            media_dir: None,
        }
    }
}
