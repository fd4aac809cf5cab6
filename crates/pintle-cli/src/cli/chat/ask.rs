//! Questions for the person at the terminal: how they come here, and what counts as an answer.

use std::sync::Arc;

use async_trait::async_trait;
use pintle_domain::approval::{Approval, ApprovalState, PersonAnswer};
use pintle_domain::store::{ApprovalStore, TenantScope};
use pintle_engine::Asker;
use tokio::sync::{mpsc, oneshot};

/// How many questions wait to be shown: one for each agent that may work at once, and some.
const MAX_QUESTIONS: usize = 16;

/// What can be answered, below every question.
pub(super) const CHOICES: &str = "y: run it · n: refuse · n WHY: refuse, and the agent reads why · l: later";

/// A question on its way to the person.
pub(super) struct Question {
    /// What is asked.
    pub(super) approval: Approval,
    /// Where the answer goes; closed once nobody waits for it here any more.
    pub(super) answer: oneshot::Sender<Option<PersonAnswer>>,
}

/// Puts questions to the conversation that is on the terminal.
pub(super) struct AtTerminal(mpsc::Sender<Question>);

/// Questions on their way.
pub(super) type Questions = mpsc::Receiver<Question>;

/// Somebody to be asked, and where the questions come out.
pub(super) fn channel() -> (Arc<dyn Asker>, Questions) {
    let (sender, questions) = mpsc::channel(MAX_QUESTIONS);
    (Arc::new(AtTerminal(sender)), questions)
}

#[async_trait]
impl Asker for AtTerminal {
    async fn ask(&self, approval: &Approval) -> Option<PersonAnswer> {
        let (answer, said) = oneshot::channel();
        let question = Question { approval: approval.clone(), answer };
        // A conversation that has ended answers nothing: the question stays in the store.
        self.0.send(question).await.ok()?;
        said.await.ok().flatten()
    }
}

/// What a line means as an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineAnswer {
    /// It may run.
    Yes,
    /// It may not; the note goes to the agent.
    No(String),
    /// Somebody says later.
    Later,
}

impl LineAnswer {
    /// Reads a line. Nothing but a plain yes is one.
    pub(super) fn read(line: &str) -> Option<Self> {
        let line = line.trim();
        let (word, note) = line.split_once([' ', '\t', ':', ',']).unwrap_or((line, ""));
        let note = note.trim_start_matches([' ', '\t', ':', ',']);
        match (word.to_lowercase().as_str(), note) {
            ("y" | "yes", "") => Some(Self::Yes),
            ("n" | "no", note) => Some(Self::No(note.to_owned())),
            ("l" | "later", "") => Some(Self::Later),
            _ => None,
        }
    }
}

/// What became of a question that is no longer asked here, in words; nothing if the turn that asked it is ending.
pub(super) async fn became(store: Arc<dyn ApprovalStore>, id: String) -> Option<String> {
    let found = tokio::task::spawn_blocking(move || store.approval(&TenantScope::All, &id)).await.ok()?.ok()??;
    let by = found.answered_by.as_deref().map(|by| format!(" by {}", crate::clean::clean(by))).unwrap_or_default();
    match found.state_at(jiff::Timestamp::now()) {
        ApprovalState::Waiting | ApprovalState::Void => None,
        ApprovalState::Approved | ApprovalState::Used => Some(format!("approved elsewhere{by}")),
        ApprovalState::Refused => Some(format!("refused elsewhere{by}")),
        ApprovalState::Expired => Some("nobody answered in time".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_one() {
        let no = |note: &str| Some(LineAnswer::No(note.to_owned()));
        for (line, expected) in [
            ("y", Some(LineAnswer::Yes)),
            (" Yes ", Some(LineAnswer::Yes)),
            ("yes, but later", None),
            ("y n", None),
            ("yeah", None),
            ("", None),
            ("n", no("")),
            ("No: use  --dry-run", no("use  --dry-run")),
            ("no, y", no("y")),
            ("not now", None),
            ("l", Some(LineAnswer::Later)),
            ("later", Some(LineAnswer::Later)),
            ("later y", None),
        ] {
            assert_eq!(LineAnswer::read(line), expected, "{line:?}");
        }
    }
}
