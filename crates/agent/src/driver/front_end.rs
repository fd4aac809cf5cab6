//! Requests of front ends: a history that came along is checked before the message itself, and what the gates left of the
//! message goes back, signed.

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::checkpoint::user_prompt_submit::InputKind;
use pintle_domain::history::{GatedMessage, HistoryMessage, Recall, RecalledHistory, SignedContent};
use pintle_domain::id::EventId;
use pintle_domain::identity::Identity;
use pintle_domain::message::{Message, Role};
use pintle_domain::record::{EventRecord, EventRuling, RecordLines};
use pintle_domain::turn::WaitingMessage;
use pintle_domain::verdict::VerdictKind;
use pintle_engine::{Dispatcher, Stopped};

use super::messages::{messages_of, user};
use super::report::TurnEnding;
use super::runner::Runner;
use super::work::Work;
use crate::conversation::Conversation;
use crate::front_ends::PassedTexts;
use crate::skills::TextRequest;
use crate::user_output::UserOutput;

/// What a turn begins with, after the gates.
#[derive(Default)]
pub(super) struct FrontEndInput {
    /// The conversation that came with the request.
    pub(super) recalled: Option<RecalledHistory>,
    prompt: Option<Submitted>,
    /// The files that come with it, as references.
    media: Vec<String>,
}

/// A message as the gates left it.
pub(super) struct Submitted {
    pub(super) text: String,
    /// What hooks want the model to read after it.
    pub(super) notes: Vec<Message>,
}

/// A history that came with a request, and the conversation that it is held against.
struct GivenHistory<'a> {
    conversation: &'a Conversation,
    history: &'a [HistoryMessage],
}

impl FrontEndInput {
    /// The text of the message that was asked, as the gates left it.
    pub(super) fn text(&self) -> Option<&str> {
        self.prompt.as_ref().map(|prompt| prompt.text.as_str())
    }

    /// What the turn begins with: what waits in the conversation, then the message.
    pub(super) fn prompts(self, conversation: &Conversation) -> Vec<Message> {
        let waiting = conversation.session.queue().iter().cloned().flat_map(WaitingMessage::into_messages);
        let Self { prompt, media, .. } = self;
        let prompt = prompt.into_iter();
        let prompt = prompt.flat_map(|prompt| {
            let asked = Message { media: media.clone(), ..user(prompt.text) };
            std::iter::once(asked).chain(prompt.notes)
        });
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
        let mut passed = self.passed(conversation, request, hooks).await;
        let recalled = match request.history {
            Some(history) => {
                Some(self.recall(GivenHistory { conversation, history }, user_output, hooks, &mut passed).await?)
            }
            // What somebody edits takes all that followed it away, once its gates have let it pass.
            None => request.keep.map(|keep| RecalledHistory { keep, messages: Vec::new(), withheld: Vec::new() }),
        };
        let spoken = match (request.history, request.keep) {
            (Some(history), _) => !history.is_empty(),
            (None, Some(keep)) => keep > 0,
            (None, None) => !conversation.session.messages().is_empty(),
        };
        let spoken = spoken || !conversation.session.queue().is_empty();
        let kind = if spoken { InputKind::Followup } else { InputKind::First };
        let prompt = submit(hooks, request.prompt, kind).await?;
        if prompt.text == request.prompt && prompt.notes.is_empty() {
            passed.add(request.prompt);
        }
        passed.remember().await;
        Ok(FrontEndInput { recalled, prompt: Some(prompt), media: request.media.to_vec() })
    }

    /// The texts of a history that passed the gates that are in force now. Where nobody keeps the conversation but the
    /// session, or nobody waits at the gate, nothing is remembered.
    async fn passed(&self, conversation: &Conversation, request: TextRequest<'_>, hooks: &Dispatcher) -> PassedTexts {
        let at = CheckpointKind::UserPromptSubmit;
        let set = hooks.set();
        let roster = set.roster();
        let Some(history) = request.history.filter(|_| roster.waits_at(at)) else { return PassedTexts::default() };
        let gates = roster.at(at).iter().map(|number| {
            let hook = roster.hook(*number);
            let stored = hook.stored.as_ref().map(|stored| (&stored.id, stored.version));
            format!("{} {:?} {stored:?}", hook.name, hook.state)
        });
        let under = conversation.worked_under().map(|under| under.digest.clone()).unwrap_or_default();
        let gates: Vec<String> = std::iter::once(under).chain(gates).collect();
        let texts: Vec<&str> =
            history.iter().filter(|kept| kept.role == Role::User).map(|kept| kept.content.as_str()).collect();
        self.front_ends.passed(hooks.who(), gates.join("\n"), &texts).await
    }

    /// What comes in of a history. What does not come in as it was sent is told and recorded.
    async fn recall(
        &self,
        given: GivenHistory<'_>,
        user_output: &dyn UserOutput,
        hooks: &Dispatcher,
        passed: &mut PassedTexts,
    ) -> Result<RecalledHistory, TurnEnding> {
        let GivenHistory { conversation, history } = given;
        let (skills, held) = (self.skill_set.skills(), conversation.session.messages());
        let session = user_output.conversation().unwrap_or(hooks.who().session_id.as_str());
        let trust = self.front_ends.trust((hooks.who(), session), &skills, held);
        let mut recall = Recall::begin(history.to_vec(), &trust)
            .map_err(|error| TurnEnding::Failed { stage: "history".into(), text: error.to_string() })?;
        while let Some(text) = recall.to_gate().map(str::to_owned) {
            if passed.has(&text) {
                recall.gated(GatedMessage::Passed { text, notes: Vec::new() });
                continue;
            }
            let gated = match submit(hooks, &text, InputKind::History).await {
                Ok(Submitted { text: left, notes }) => {
                    if left == text && notes.is_empty() {
                        passed.add(&text);
                    }
                    GatedMessage::Passed { text: left, notes }
                }
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
    pub(super) async fn tell_started(&self, text: String) {
        let (tenant, session) = (self.tenant().to_owned(), self.signed_session().to_owned());
        let (front_ends, is_long) =
            (self.runner.front_ends.clone(), text.len() > pintle_domain::session::LONG_TEXT_BYTES);
        let sign = move || {
            let sig = front_ends.sign(SignedContent::text(&text, &tenant, &session));
            (text, sig)
        };
        // A long one takes a while, in which other turns go on.
        let signed = if is_long { tokio::task::spawn_blocking(sign).await } else { Ok(sign()) };
        let (text, sig) = match signed {
            Ok(signed) => signed,
            Err(error) => return tracing::error!(%error, "the beginning of a turn could not be told"),
        };
        self.turn_env.user_output.started(&text, &sig);
    }

    pub(super) fn tenant(&self) -> &str {
        self.hooks.who().tenant_id.as_str()
    }

    /// The conversation that signatures are for.
    pub(super) fn signed_session(&self) -> &str {
        self.turn_env.user_output.conversation().unwrap_or(self.hooks.who().session_id.as_str())
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
