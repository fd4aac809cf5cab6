//! Requests of front ends: a history that came along is checked before the message itself, and what the gates left of the
//! message goes back, signed.

use domain::checkpoint::CheckpointKind;
use domain::checkpoint::user_prompt_submit::InputKind;
use domain::history::{GatedMessage, HistoryMessage, Recall, RecalledHistory, SignedContent};
use domain::id::EventId;
use domain::identity::Identity;
use domain::message::Message;
use domain::record::{EventRecord, EventRuling, RecordLines};
use domain::turn::WaitingMessage;
use domain::verdict::VerdictKind;
use engine::{Dispatcher, Stopped};

use super::messages::{messages_of, user};
use super::report::TurnEnding;
use super::runner::Runner;
use super::work::Work;
use crate::conversation::Conversation;
use crate::skills::TextRequest;
use crate::user_output::UserOutput;

/// What a turn begins with, after the gates.
#[derive(Default)]
pub(super) struct FrontEndInput {
    /// The conversation that came with the request.
    pub(super) recalled: Option<RecalledHistory>,
    prompt: Option<Submitted>,
}

/// A message as the gates left it.
pub(super) struct Submitted {
    pub(super) text: String,
    /// What hooks want the model to read after it.
    pub(super) notes: Vec<Message>,
}

impl FrontEndInput {
    /// The text of the message that was asked, as the gates left it.
    pub(super) fn text(&self) -> Option<&str> {
        self.prompt.as_ref().map(|prompt| prompt.text.as_str())
    }

    /// What the turn begins with: what waits in the conversation, then the message.
    pub(super) fn prompts(self, conversation: &Conversation) -> Vec<Message> {
        let waiting = conversation.session.queue().iter().cloned().flat_map(WaitingMessage::into_messages);
        let prompt = self.prompt.into_iter();
        let prompt = prompt.flat_map(|prompt| std::iter::once(user(prompt.text)).chain(prompt.notes));
        waiting.chain(prompt).collect()
    }
}

impl Runner {
    /// Puts a request to the gates: the history that it brings, oldest message first, then what it asks.
    pub(super) async fn receive(
        &self,
        conversation: &Conversation,
        request: TextRequest<'_>,
        user_output: &dyn UserOutput,
        hooks: &Dispatcher,
    ) -> Result<FrontEndInput, TurnEnding> {
        let recalled = match request.history {
            Some(history) => Some(self.recall(conversation, history, user_output, hooks).await?),
            None => None,
        };
        let spoken = match request.history {
            Some(history) => !history.is_empty(),
            None => !conversation.session.messages().is_empty(),
        };
        let spoken = spoken || !conversation.session.queue().is_empty();
        let kind = if spoken { InputKind::Followup } else { InputKind::First };
        let prompt = Some(submit(hooks, request.prompt, kind).await?);
        Ok(FrontEndInput { recalled, prompt })
    }

    /// What comes in of a history. What does not come in as it was sent is told and recorded.
    async fn recall(
        &self,
        conversation: &Conversation,
        history: &[HistoryMessage],
        user_output: &dyn UserOutput,
        hooks: &Dispatcher,
    ) -> Result<RecalledHistory, TurnEnding> {
        let (skills, held) = (self.skill_set.skills(), conversation.session.messages());
        let trust = self.front_ends.trust(hooks.who(), &skills, held);
        let mut recall = Recall::begin(history.to_vec(), &trust)
            .map_err(|error| TurnEnding::Failed { stage: "history".into(), text: error.to_string() })?;
        while let Some(text) = recall.to_gate().map(str::to_owned) {
            let gated = match submit(hooks, &text, InputKind::History).await {
                Ok(Submitted { text, notes }) => GatedMessage::Passed { text, notes },
                Err(TurnEnding::Blocked(denied)) => {
                    user_output.refused(&denied.text());
                    GatedMessage::Refused
                }
                Err(other) => return Err(other),
            };
            recall.gated(gated);
        }
        let recalled = recall.finish(held);
        hooks.keep(recalled.told().into_iter().map(|text| withheld(hooks.who(), text)).collect());
        Ok(recalled)
    }
}

impl Work<'_> {
    /// Tells whoever keeps the conversation what the gates left of the message that began the turn.
    pub(super) fn tell_started(&self, text: &str) {
        let who = self.hooks.who();
        let sig =
            self.runner.front_ends.sign(SignedContent::text(text, who.tenant_id.as_str(), who.session_id.as_str()));
        self.turn_env.user_output.started(text, &sig);
    }
}

/// The record of something in a history that did not come in as it was sent.
fn withheld(who: &Identity, text: String) -> EventRecord {
    EventRecord {
        event_id: EventId::fresh(),
        at: jiff::Timestamp::now(),
        checkpoint: CheckpointKind::UserPromptSubmit,
        kind: Some("history_withheld"),
        who: who.clone(),
        tool: None,
        input: None,
        ruling: EventRuling { text: Some(text), ..EventRuling::word(VerdictKind::Modify) },
        hooks: RecordLines::default(),
    }
}

/// Puts a message to the gates; what they leave of it goes on.
pub(super) async fn submit(hooks: &Dispatcher, prompt: &str, kind: InputKind) -> Result<Submitted, TurnEnding> {
    match hooks.submit(prompt, kind).await {
        Ok((text, notes)) => Ok(Submitted { text, notes: messages_of(notes).collect() }),
        Err(Stopped::Denied(denied)) => Err(TurnEnding::Blocked(denied)),
        Err(Stopped::Aborted(aborted)) => Err(TurnEnding::StoppedByHook(aborted)),
        Err(Stopped::Cancelled) => Err(TurnEnding::Cancelled),
    }
}
