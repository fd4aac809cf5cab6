//! Requests of front ends: a history that came along is checked before the message itself, and what the gates left of the
//! message goes back, signed.

use domain::chain::Note;
use domain::checkpoint::user_prompt_submit::InputKind;
use domain::checkpoint::{CheckpointKind, UserPromptSubmit};
use domain::history::{Gated, Kept, Recall, Recalled, Signed};
use domain::id::EventId;
use domain::message::Message;
use domain::record::{EventRecord, Lines, Ruled};
use domain::ruling::{Ground, Ruling};
use domain::turn::Waiting;
use domain::verdict::Word;
use engine::{Dispatcher, TurnCx};

use super::work::Work;
use super::{Around, Ending, Runner, now, user};
use crate::conversation::Conversation;
use crate::skills::Request;

/// What a turn begins with, after the gates.
#[derive(Default)]
pub(super) struct Received {
    /// The conversation that came with the request.
    pub(super) recalled: Option<Recalled>,
    prompt: Option<Submitted>,
}

/// A message as the gates left it.
pub(super) struct Submitted {
    pub(super) text: String,
    /// What hooks want the model to read after it.
    pub(super) notes: Vec<Message>,
}

impl Received {
    /// The text of the message that was asked, as the gates left it.
    pub(super) fn text(&self) -> Option<&str> {
        self.prompt.as_ref().map(|prompt| prompt.text.as_str())
    }

    /// What the turn begins with: what waits in the conversation, then the message.
    pub(super) fn prompts(self, conversation: &Conversation) -> Vec<Message> {
        let waiting = conversation.session.queue().iter().cloned().flat_map(Waiting::into_messages);
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
        request: Request<'_>,
        (around, cx): (&Around, &TurnCx),
    ) -> Result<Received, Ending> {
        let recalled = match request.history {
            Some(history) => Some(self.recall(conversation, history, (around, cx)).await?),
            None => None,
        };
        let spoken = match request.history {
            Some(history) => !history.is_empty(),
            None => !conversation.session.messages().is_empty(),
        };
        let spoken = spoken || !conversation.session.queue().is_empty();
        let kind = if spoken { InputKind::Followup } else { InputKind::First };
        let prompt = Some(submit(&around.hooks, cx, request.prompt, kind).await?);
        Ok(Received { recalled, prompt })
    }

    /// What comes in of a history. What does not come in as it was sent is told and recorded.
    async fn recall(
        &self,
        conversation: &Conversation,
        history: &[Kept],
        (around, cx): (&Around, &TurnCx),
    ) -> Result<Recalled, Ending> {
        let (skills, held) = (self.shelf.skills(), conversation.session.messages());
        let trust = self.front_ends.trust(&cx.who, &skills, held);
        let mut recall = Recall::begin(history.to_vec(), &trust)
            .map_err(|error| Ending::Failed { stage: "history".into(), text: error.to_string() })?;
        while let Some(text) = recall.to_gate().map(str::to_owned) {
            let gated = match submit(&around.hooks, cx, &text, InputKind::History).await {
                Ok(Submitted { text, notes }) => Gated::Passed { text, notes },
                Err(Ending::Blocked(denied)) => {
                    around.outlet.refused(&denied.text());
                    Gated::Refused
                }
                Err(other) => return Err(other),
            };
            recall.gated(gated);
        }
        let recalled = recall.finish(held);
        around.hooks.keep(recalled.told().into_iter().map(|text| withheld(cx, text)).collect());
        Ok(recalled)
    }
}

impl Work<'_> {
    /// Tells whoever keeps the conversation what the gates left of the message that began the turn.
    pub(super) fn tell_started(&self, text: &str) {
        let who = &self.cx.who;
        let sig = self.runner.front_ends.sign(Signed::text(text, who.tenant_id.as_str(), who.session_id.as_str()));
        self.around.outlet.started(text, &sig);
    }
}

/// The record of something in a history that did not come in as it was sent.
fn withheld(cx: &TurnCx, text: String) -> EventRecord {
    EventRecord {
        event_id: EventId::fresh(),
        at: jiff::Timestamp::now(),
        checkpoint: CheckpointKind::UserPromptSubmit,
        kind: Some("history_withheld"),
        who: cx.who.clone(),
        tool: None,
        input: None,
        ruling: Ruled { text: Some(text), ..Ruled::word(Word::Modify) },
        hooks: Lines::default(),
    }
}

/// What hooks want the model to read, as messages.
pub(super) fn messages_of(notes: Vec<Note>) -> impl Iterator<Item = Message> {
    notes.into_iter().map(|note| Message { created_at: Some(now()), ..Message::note(note.by.as_str(), &note.text) })
}

/// Puts a message to the gates; what they leave of it goes on.
pub(super) async fn submit(
    hooks: &Dispatcher,
    cx: &TurnCx,
    prompt: &str,
    input_kind: InputKind,
) -> Result<Submitted, Ending> {
    let (submitted, ruling, notes) =
        hooks.consult(cx, UserPromptSubmit { prompt: prompt.to_owned(), input_kind }).await;
    match (submitted, ruling) {
        // A gate that was cancelled refuses too, but that is no verdict on the prompt.
        (_, Ruling::Deny(denied)) if denied.ground == Ground::Fault && cx.cancel.is_cancelled() => {
            Err(Ending::Cancelled)
        }
        (_, Ruling::Deny(denied)) => Err(Ending::Blocked(denied)),
        (submitted, Ruling::Proceed) => Ok(Submitted { text: submitted.prompt, notes: messages_of(notes).collect() }),
        (_, Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. }) => match never {},
        (_, Ruling::Abort(aborted)) => Err(Ending::StoppedByHook(aborted)),
    }
}
