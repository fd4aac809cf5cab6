//! What a run is asked to do, and for whom.

use std::sync::Arc;

use pintle_agent::Conversation;
use pintle_domain::history::HistoryMessage;
use pintle_domain::id::TurnId;
use pintle_domain::json::{Rendered, json};
use pintle_domain::message::{Message, Role};
use pintle_host::ready_agent::ReadyAgent;

use crate::error::ApiError;
use crate::quotas::Place;
use crate::wire::content::Placed;

/// What a run is asked to do.
pub(crate) struct Errand {
    pub(crate) agent: Arc<ReadyAgent>,
    pub(crate) skills: Option<Vec<String>>,
    pub(crate) enable_tools: bool,
    pub(crate) history: Option<Vec<HistoryMessage>>,
    /// The message whose place its own takes.
    pub(crate) edits: Option<EditedMessage>,
    /// The files that come with the prompt, as references.
    pub(crate) media: Vec<String>,
    /// The id of its turn: the one that was left open, if it resumes.
    pub(crate) turn: TurnId,
    /// Whether it goes on with the turn that was left open in its session.
    pub(crate) resumes: bool,
    /// It counts as a turn in flight to its end; one that was counted before it was left does not count again.
    pub(crate) place: Option<Place>,
    pub(crate) whose: Whose,
}

/// What comes with a prompt.
pub(crate) struct Brought<'a> {
    /// Whether the host keeps the conversation.
    pub(crate) kept: bool,
    pub(crate) files: Vec<Placed>,
    pub(crate) history: &'a mut [HistoryMessage],
}

/// Gives a session back, which takes as long as a commit.
pub(crate) async fn let_go(conversation: Box<Conversation>) {
    if tokio::task::spawn_blocking(move || drop(conversation)).await.is_err() {
        tracing::error!("a session was not released properly");
    }
}

/// A message of a conversation that somebody says anew: with it goes what followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EditedMessage {
    /// Its place, from 0.
    pub(crate) place: usize,
    /// The number of messages that stood there when somebody looked.
    pub(crate) of: usize,
    /// When it was said, as somebody saw it: another one may have taken its place since.
    pub(crate) at: Option<String>,
}

impl EditedMessage {
    /// Whether it is there, and a person said it.
    pub(crate) fn check(&self, messages: &[Rendered<Message>]) -> Result<(), ApiError> {
        let said = messages.get(self.place).map(Rendered::get);
        let is_another = self.at.is_some() && said.is_some_and(|message| message.created_at != self.at);
        if messages.len() != self.of || is_another {
            let why = "the conversation went on meanwhile: look at it again, then edit";
            return Err(ApiError::precondition(why).with_details(json!({ "kind": "conversation_changed" })));
        }
        match said.is_some_and(|message| message.role == Role::User && message.origin.is_empty()) {
            true => Ok(()),
            false => Err(ApiError::invalid("edits.place is not the place of a message that a person sent")),
        }
    }
}

/// Who asked for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A client of the socket, whose message is one for the turn that is worked there already.
    Socket,
    /// A request over HTTP, which is none.
    Http,
    /// Nobody who waits for it.
    Nobody,
}

impl Errand {
    /// Goes on with the turn `turn`, which was left open.
    pub(crate) fn resuming(agent: Arc<ReadyAgent>, turn: TurnId) -> Self {
        Self {
            agent,
            skills: None,
            enable_tools: true,
            history: None,
            edits: None,
            media: Vec::new(),
            turn,
            resumes: true,
            place: None,
            whose: Whose::Nobody,
        }
    }

    /// The session for a turn that begins in it: what is edited has to stand there still, else the session is given back.
    pub(crate) async fn fresh(&self, conversation: Box<Conversation>) -> Result<Box<Conversation>, ApiError> {
        match self.edits.as_ref().map_or(Ok(()), |edited| edited.check(conversation.messages())) {
            Ok(()) => Ok(conversation),
            Err(error) => {
                let_go(conversation).await;
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_person_said_is_edited_and_only_as_somebody_saw_it() {
        let said = |role, text: &str| Rendered::new(Message::text(role, text));
        let messages = [said(Role::User, "a"), said(Role::Assistant, "b"), Message::note("h", "n").into()];
        for (place, of, good) in
            [(0, 3, true), (1, 3, false), (2, 3, false), (3, 3, false), (0, 2, false), (0, 4, false)]
        {
            assert_eq!(EditedMessage { place, of, at: None }.check(&messages).is_ok(), good, "{place} of {of}");
        }
        let mut other = Message::text(Role::User, "a");
        other.created_at = Some("2026-11-26T07:00:00Z".to_owned());
        let messages = [Rendered::new(other)];
        for (at, good) in [(None, true), (Some("2026-11-26T07:00:00Z"), true), (Some("2026-11-26T06:59:00Z"), false)] {
            let edited = EditedMessage { place: 0, of: 1, at: at.map(str::to_owned) };
            assert_eq!(edited.check(&messages).is_ok(), good, "{at:?}");
        }
    }
}
