//! A rule of the agent family, as its row has it: the published record.

use serde::{Deserialize, Serialize};

use crate::breaker::BreakerPolicy;
use crate::checkpoint::kind::{CheckpointKind, Duty};
use crate::id::{HookId, TenantId};
use crate::json::Object;

/// The checkpoints at which hooks of the agent family act, in the order of a turn. Source: the published format of
/// rules.
pub const AGENT_EVENTS: [CheckpointKind; 7] = [
    RuleEvent::SessionStart.checkpoint(),
    RuleEvent::UserPromptSubmit.checkpoint(),
    RuleEvent::PreToolUse.checkpoint(),
    RuleEvent::PostToolUse.checkpoint(),
    RuleEvent::SubagentStart.checkpoint(),
    RuleEvent::SubagentStop.checkpoint(),
    RuleEvent::Stop.checkpoint(),
];

/// The name of a checkpoint at which rules act, one of [`AGENT_EVENTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the checkpoint of the same name")]
pub enum RuleEvent {
    SessionStart,
    UserPromptSubmit,
    PreToolUse,
    PostToolUse,
    SubagentStart,
    SubagentStop,
    Stop,
}

impl RuleEvent {
    const ALL: [Self; AGENT_EVENTS.len()] = [
        Self::SessionStart,
        Self::UserPromptSubmit,
        Self::PreToolUse,
        Self::PostToolUse,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::Stop,
    ];

    /// The checkpoint `kind`, if rules act there.
    pub fn at(kind: CheckpointKind) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.checkpoint() == kind)
    }

    /// The checkpoint.
    pub const fn checkpoint(self) -> CheckpointKind {
        match self {
            Self::SessionStart => CheckpointKind::SessionStart,
            Self::UserPromptSubmit => CheckpointKind::UserPromptSubmit,
            Self::PreToolUse => CheckpointKind::PreToolUse,
            Self::PostToolUse => CheckpointKind::PostToolUse,
            Self::SubagentStart => CheckpointKind::SubagentStart,
            Self::SubagentStop => CheckpointKind::SubagentStop,
            Self::Stop => CheckpointKind::Stop,
        }
    }
}

/// The member of `metadata` that names the file in which a rule is kept.
pub const IN_FILE: &str = "file";

/// The member of `metadata` that names the rule, by its id, whose calls this rule asks a person about instead.
pub const EXCEPTION_OF: &str = "exception_of";

/// One row of the table `agent_hooks`. Its JSON is the published record; times are RFC 3339, UTC.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// A UUID.
    pub id: HookId,
    /// The tenant that owns the rule; the sentinel for global ones.
    pub tenant_id: TenantId,
    /// The agents that it is about, as UUIDs; only of scope `agent`.
    pub agent_ids: Vec<String>,
    /// Where it acts, one of [`AGENT_EVENTS`].
    pub event: CheckpointKind,
    /// The type of the handler that runs the rule.
    pub handler_type: HandlerType,
    /// The scope: the turns that the rule is about.
    pub scope: HookScope,
    /// For people; may be empty, need not be unique.
    pub name: String,
    /// Settings of its handler. Secrets in it are encrypted.
    pub config: Object,
    /// A pattern of tool names; empty for every event.
    pub matcher: String,
    /// A condition; empty for none.
    pub if_expr: String,
    /// The time that one call of its handler may take.
    pub timeout_ms: u32,
    /// The fallback that counts when that time is over.
    pub on_timeout: Fallback,
    /// Higher runs first.
    pub priority: i32,
    /// Whether it acts.
    pub enabled: bool,
    /// Counts its changes, from 1.
    pub version: u32,
    /// Who brought it.
    pub source: Source,
    /// Whether it may change what it is asked about.
    pub may_rewrite: bool,
    /// The outcomes that its circuit breaker counts.
    pub breaker: BreakerPolicy,
    /// The fallback that counts while its circuit breaker is open.
    pub on_trip: Fallback,
    /// Since when its circuit breaker is open.
    pub tripped_at: Option<String>,
    /// Why it does not act, where its owner did not say so: `breaker`, `edition`, `no_agents`.
    pub disabled_reason: String,
    /// Free.
    pub metadata: Object,
    /// Who made it.
    pub created_by: Option<String>,
    /// When.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
}

impl Rule {
    /// The label by which people know the rule: its name, or its id if it has none.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { self.id.as_str() } else { &self.name }
    }

    /// The file that it is kept in, if it is: then it is changed there.
    pub fn file(&self) -> Option<&str> {
        self.metadata.get(IN_FILE)?.as_str()
    }

    /// Whether a record of `hook` means this rule: a name says which hook is meant, and one without a name is always a new
    /// one. What is kept in a file, or shipped, is changed there.
    pub fn has_place_of(&self, hook: &Self) -> bool {
        !hook.name.is_empty()
            && self.name == hook.name
            && self.tenant_id == hook.tenant_id
            && self.scope == hook.scope
            && self.event == hook.event
            && self.source == Source::User
            && self.file().is_none()
    }

    /// The id of the rule that it is an exception of, if it is one: what it is about, that rule does not see.
    pub fn exception_of(&self) -> Option<&str> {
        self.metadata.get(EXCEPTION_OF)?.as_str()
    }

    /// Whether it counts at its event: it acts, or what stands in its place while its breaker is open does.
    pub fn is_candidate(&self) -> bool {
        self.enabled || self.tripped_at.is_some()
    }
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$var_doc:meta])* $variant:ident = $word:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$var_doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every value, in the order of the published list.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word on the wire.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// The value that `word` names.
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }
        }
    )*};
}

words! {
    /// The type of the handler of a rule.
    HandlerType {
        /// A shell command.
        Command = "command",
        /// A request to a URL.
        Http = "http",
        /// A language model as judge.
        Prompt = "prompt",
        /// A small program.
        Script = "script",
    }

    /// The scope of a rule: the turns that it is about.
    HookScope {
        /// Everyone's.
        Global = "global",
        /// Those of one tenant.
        Tenant = "tenant",
        /// Those of some agents of one tenant.
        Agent = "agent",
    }

    /// Who brought a rule.
    Source {
        /// It is shipped: read-only but for `enabled`.
        Builtin = "builtin",
        /// Somebody.
        User = "user",
    }

    /// The answer that counts instead of a handler's.
    Fallback {
        /// No.
        Block = "block",
        /// Going on.
        Allow = "allow",
    }

    /// The edition of a host: the kinds of hooks and tenants that it has.
    Edition {
        /// One tenant; commands may be hooks.
        Lite = "lite",
        /// Several tenants; no commands.
        Standard = "standard",
    }

    /// The decision that is kept of one execution.
    Decision {
        /// It let pass.
        Allow = "allow",
        /// It refused.
        Block = "block",
        /// It wanted a person to say.
        Ask = "ask",
        /// It failed.
        Error = "error",
        /// Its time was over.
        Timeout = "timeout",
    }
}

impl Fallback {
    /// The fallback that counts at `event` unless the hook says otherwise: gates stay shut.
    pub fn default_at(event: CheckpointKind) -> Self {
        if event.duty() == Duty::Gate { Self::Block } else { Self::Allow }
    }
}

/// The details that a rule has beyond every other hook, ready to be asked.
#[derive(Clone, Debug)]
pub struct RuleDetails {
    /// Its row.
    pub id: HookId,
    /// The tenant that owns the rule; the sentinel for global ones.
    pub tenant: TenantId,
    /// Its version.
    pub version: u32,
    /// The type of the handler that runs the rule.
    pub handler: HandlerType,
    /// When it was made; the older of two with one priority runs first.
    pub created_at: String,
    /// When it wants to be asked, beyond its matcher.
    pub condition: Option<std::sync::Arc<dyn crate::condition::Condition>>,
    /// The rights: what the rule may change.
    pub rights: Rights,
    /// The outcomes that its circuit breaker counts.
    pub breaker: BreakerPolicy,
    /// The fallback that counts while the breaker is open.
    pub on_trip: Fallback,
    /// Whether it asks a person about calls that another rule refuses.
    pub is_exception: bool,
}

/// The rights of a hook: what it may change of what it is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rights {
    /// All of it.
    Everything,
    /// Nothing.
    Nothing,
    /// These fields: `rawInput`, `toolInput`, `toolInput.KEY`.
    Fields(Vec<String>),
}

impl Rights {
    /// Whether the text of a message may be changed.
    pub fn prompt(&self) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Fields(fields) => fields.iter().any(|field| field == "rawInput"),
        }
    }

    /// Whether the argument `key` of a tool may be changed.
    pub fn argument(&self, key: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Fields(fields) => fields
                .iter()
                .any(|field| field == "toolInput" || field.strip_prefix("toolInput.").is_some_and(|own| own == key)),
        }
    }
}

/// How a hook at `event` stands whose breaker tripped at `since`: what becomes of the calls that match a gate is more
/// than that it does not run.
pub fn tripped(since: &str, on_trip: Fallback, event: CheckpointKind) -> String {
    let what = match (event.duty(), on_trip) {
        (Duty::Gate, Fallback::Block) => "and refuses every matching call",
        (Duty::Gate, Fallback::Allow) => "and lets every matching call pass",
        (Duty::Observer | Duty::Rewriter | Duty::Approver | Duty::Injector, _) => "and it is not asked",
    };
    format!("its circuit breaker tripped at {since} {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_both_ways() {
        for edition in Edition::ALL {
            assert_eq!(Edition::named(edition.word()), Some(*edition));
        }
        assert_eq!(HandlerType::named("builtin"), None);
        assert_eq!(serde_json::to_string(&Fallback::Block).unwrap(), "\"block\"");
        assert!(AGENT_EVENTS.iter().all(|event| [Duty::Gate, Duty::Observer].contains(&event.duty())));
    }

    #[test]
    fn a_tripped_hook_refuses_only_at_gates() {
        let said = |on_trip, event| tripped("T", on_trip, event);
        let (gate, observer) = (CheckpointKind::PreToolUse, CheckpointKind::PostToolUse);
        assert_eq!(said(Fallback::Block, gate), "its circuit breaker tripped at T and refuses every matching call");
        assert_eq!(said(Fallback::Allow, gate), "its circuit breaker tripped at T and lets every matching call pass");
        for on_trip in [Fallback::Block, Fallback::Allow] {
            assert_eq!(said(on_trip, observer), "its circuit breaker tripped at T and it is not asked");
        }
    }

    #[test]
    fn rights_name_fields() {
        let check = |rights: Rights| (rights.prompt(), rights.argument("cmd"), rights.argument("path"));
        let fields = |names: &[&str]| Rights::Fields(names.iter().map(ToString::to_string).collect());
        assert_eq!(check(Rights::Everything), (true, true, true));
        assert_eq!(check(Rights::Nothing), (false, false, false));
        assert_eq!(check(fields(&["rawInput", "toolInput.cmd"])), (true, true, false));
        assert_eq!(check(fields(&["toolInput"])), (false, true, true));
    }
}
