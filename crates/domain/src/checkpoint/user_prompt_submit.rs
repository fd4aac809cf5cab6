//! `user_prompt_submit`: every message that can reach the model passes here first.

use super::verdict::{ParsedVerdict, Verdict};
use super::{AgentInfo, Checkpoint, CheckpointKind, Facts, Reply, Snapshot, Subject};
use crate::id::HookName;
use crate::reason::{Never, Reason};
use crate::rule::Rights;

/// A message on its way to the model.
///
/// # Example
///
/// A rewrite replaces the text everywhere.
///
/// ```
/// use pintle_domain::checkpoint::{Checkpoint, AgentInfo, UserPromptSubmit};
/// use pintle_domain::id::HookName;
/// # struct Agent;
/// # impl AgentInfo for Agent {
/// #     fn tool(&self, name: &str) -> Option<String> { (name == "read").then(|| name.to_owned()) }
/// #     fn model(&self, model: &str) -> bool { model == "big" }
/// #     fn owner(&self, _name: &str) -> Option<HookName> { None }
/// # }
///
/// let mut event = UserPromptSubmit::first("mail ann@example.org");
/// event.modify("mail [REDACTED_EMAIL]".into(), &HookName::from("pii"), &Agent).expect("any text is allowed");
/// assert_eq!(event.prompt, "mail [REDACTED_EMAIL]");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct UserPromptSubmit {
    /// The text. A rewrite replaces it everywhere.
    pub prompt: String,
    /// The way in which the message comes in.
    pub input_kind: InputKind,
}

/// The way in which a message comes into a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// As the first one.
    First,
    /// As the beginning of a later turn.
    Followup,
    /// Into a turn that is under way.
    Steering,
    /// With a conversation that somebody else keeps, and that nobody here has seen like this.
    History,
}

impl UserPromptSubmit {
    /// The first message of a session.
    pub fn first(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), input_kind: InputKind::First }
    }
}

impl Checkpoint for UserPromptSubmit {
    const KIND: CheckpointKind = CheckpointKind::UserPromptSubmit;
    const TAKES_NOTES: bool = true;
    type Modify = String;
    type Respond = Never;
    type Ask = Never;
    type Deny = Reason;
    type Abort = Never;

    fn facts(&self) -> Facts<'_> {
        let first_prompt = self.input_kind == InputKind::First;
        Facts { prompt: Some(&self.prompt), first_prompt, ..Facts::default() }
    }

    fn modify(&mut self, with: String, _by: &HookName, _known: &dyn AgentInfo) -> Result<Vec<String>, String> {
        self.prompt = with;
        Ok(Vec::new())
    }

    fn permitted(&self, with: String, rights: &Rights) -> (Option<String>, Option<String>) {
        if rights.prompt() { (Some(with), None) } else { (None, Some("it may not change the message".to_owned())) }
    }

    fn closed(why: Reason) -> Option<Verdict<Self>> {
        Some(Verdict::Deny(why))
    }

    fn aborted(_why: Reason) -> Option<Verdict<Self>> {
        None
    }

    fn subject(&self) -> Subject<'_> {
        Subject::UserPromptSubmit(self)
    }

    fn heard(reply: Reply) -> Option<ParsedVerdict<Self>> {
        if let Reply::UserPromptSubmit(heard) = reply { Some(heard) } else { None }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::Prompt(self.prompt.clone())
    }
}
