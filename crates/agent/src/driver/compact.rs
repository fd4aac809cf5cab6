//! Makes room in a conversation that comes near to what the model takes: the oldest messages give way to a summary.

use pintle_domain::checkpoint::RuntimeEvent;
use pintle_domain::checkpoint::runtime::{CompressReason, RetryReason};
use pintle_domain::json::{Object, Rendered};
use pintle_domain::llm::LlmRequest;
use pintle_domain::message::{Message, Role};
use pintle_domain::turn::{Fact, whole_rounds};

use super::model::NoAnswer;
use super::shape::ModelRequest;
use super::work::Work;

/// Bytes of text that make a token, about: the usual share for English; other languages take more tokens, and the
/// model says when it is too much.
const BYTES_A_TOKEN: usize = 4;
/// What a message costs beside its text: role, marks, ids.
const TOKENS_A_MESSAGE: usize = 8;
/// The share of what the model takes at which room is made, in percent: the rest is for the answer.
const FULL_PERCENT: usize = 80;
/// The share that is kept as it is, in percent of the same.
const KEPT_PERCENT: usize = 30;
/// The most of one message that goes into the summary's request, in bytes: the beginning says what it was about.
const EXCERPT_BYTES: usize = 4096;
/// The most of all messages that goes into it, in bytes: it must fit in the model that the conversation did not fit in.
const TRANSCRIPT_BYTES: usize = 96 * 1024;

/// What the model is asked to do with the oldest messages.
const INSTRUCTION: &str = "Summarise the following part of a conversation between a user and an agent, for the agent, \
which will read your summary in its place. Keep what the user wants, decisions, names, paths, numbers, results of \
tools, and what is still open. Write plain text, no greeting.";

/// What stands before a summary in the conversation.
const HEADING: &str = "[Summary of the conversation so far]";

/// What stands in the place of messages that are left out without a summary, where something must.
const LEFT_OUT: &str = "[The conversation so far was left out: it did not fit]";

impl Work<'_> {
    /// Makes room if the conversation comes near to what the model takes. `false`: the turn is ending.
    pub(super) async fn make_room(&mut self) -> bool {
        let budget = usize::try_from(self.runner.settings.context_tokens).unwrap_or(usize::MAX);
        if budget == 0 || self.size() <= percent(budget, FULL_PERCENT) || !self.can_shorten() {
            return true;
        }
        self.compress(CompressReason::ProactiveBudget).await
    }

    /// Shortens a conversation that the model found too long. `false`: the turn is ending.
    pub(super) async fn shorten(&mut self, error: &str) -> bool {
        self.tell(RuntimeEvent::LlmRetry {
            attempt: 1,
            max_retries: 1,
            reason: RetryReason::ContextLimit,
            error: error.to_owned(),
            backoff: std::time::Duration::ZERO,
        });
        self.compress(CompressReason::LlmRetry).await
    }

    /// Whether there is anything to leave out.
    pub(super) fn can_shorten(&self) -> bool {
        self.cut() > 0 || self.long_result(0).is_some()
    }

    /// The place of the oldest result from `upto` on that can be cut.
    fn long_result(&self, upto: usize) -> Option<usize> {
        let is_long = |message: &Message| message.role == Role::Tool && message.content.len() > EXCERPT_BYTES;
        let mut places = upto..self.turn.messages().len();
        places.find(|at| is_long(self.turn.messages()[*at].get()))
    }

    /// Cuts long results among the messages from `upto` on, the oldest first, until these fit into what is kept of
    /// `whole`.
    fn trim_results(&mut self, upto: usize, whole: usize) {
        while size(&self.turn.messages()[upto..]) > percent(whole, KEPT_PERCENT)
            && let Some(at) = self.long_result(upto)
        {
            self.trim(at, EXCERPT_BYTES);
        }
    }

    /// What there is room for, in tokens: as far as nobody said that, what there is now was too much.
    fn whole(&self) -> usize {
        let budget = usize::try_from(self.runner.settings.context_tokens).unwrap_or(usize::MAX);
        if budget == 0 { self.size() } else { budget }
    }

    /// The tokens of the conversation, about.
    fn size(&self) -> usize {
        let system = self.runner.settings.system.len() / BYTES_A_TOKEN;
        system + size(self.turn.messages())
    }

    /// How many of the oldest messages go: all but the newest that fit in the kept share, cut where a message of the
    /// user's begins if there is such a place, and never between a call and its answer.
    fn cut(&self) -> usize {
        let messages = self.turn.messages();
        let mut room = percent(self.whole(), KEPT_PERCENT);
        let kept = messages.iter().rev().take_while(|message| {
            let fits = tokens(message) <= room;
            room = room.saturating_sub(tokens(message));
            fits
        });
        // The newest message stays whatever its size.
        let wanted = messages.len() - kept.count().max(1);
        let begins = |at: &usize| self.begins(messages[*at].get());
        let at_user = (1..=wanted.min(messages.len().saturating_sub(1))).rev().find(begins);
        // A cut there must be worth it: one that leaves the most of it in place makes no room.
        let worth = |at: &usize| size(&messages[..*at]) * 2 >= size(&messages[..wanted]);
        at_user.filter(worth).unwrap_or_else(|| whole_rounds(messages, wanted))
    }

    /// Whether `message` is the user's: not a text that only seems to be.
    fn begins(&self, message: &Message) -> bool {
        message.role == Role::User && message.id().is_none()
    }

    async fn compress(&mut self, reason: CompressReason) -> bool {
        let whole = self.whole();
        // Results that can be read again are the cheapest thing to lose.
        self.trim_results(self.cut(), whole);
        let upto = if self.size() > percent(whole, KEPT_PERCENT) { self.cut() } else { 0 };
        if upto > 0 && !self.summarise(upto).await {
            return false;
        }
        let remaining_messages = self.turn.messages().len();
        self.tell(RuntimeEvent::ContextCompress { reason, dropped_messages: upto, remaining_messages });
        true
    }

    /// The oldest `upto` messages give way to a summary. `false`: the turn is ending.
    async fn summarise(&mut self, upto: usize) -> bool {
        // Texts whose time is not over stay where they are; a summary would outlive them.
        let passing = |message: &&Rendered<Message>| self.turn.is_passing_text(message.get());
        let stays = self.turn.messages()[..upto].iter().any(|message| passing(&message));
        let said: Vec<Rendered<Message>> =
            self.turn.messages()[..upto].iter().filter(|message| !passing(message)).cloned().collect();
        let (transcript, omitted_oversized) = transcript(&said);
        let summary = match self.exchange(self.gate_notes(transcript), ModelRequest::Aside).await {
            Ok(answered) => Some(answered.reply.content).filter(|text| !text.trim().is_empty()),
            Err(NoAnswer::Ended | NoAnswer::Stopped(_)) => return false,
            Err(NoAnswer::Failed(text) | NoAnswer::TooLong(text)) => {
                tracing::warn!("the oldest messages are left out without a summary: {text}");
                None
            }
        };
        let summary_len = summary.as_ref().map(String::len);
        let summary = summary.map(|text| format!("{HEADING}\n{text}"));
        // A conversation begins with something of the user's: providers refuse another one.
        let begins = !stays && self.turn.messages().get(upto).is_some_and(|message| self.begins(message.get()));
        let stands = summary.or_else(|| (!begins).then(|| LEFT_OUT.to_owned()));
        let summary = stands.map(|text| Message::text(Role::User, text).into());
        let before = self.turn.messages().len();
        drop(self.note(Fact::Compacted { upto, summary }));
        if let Some(summary_len) = summary_len {
            self.tell(RuntimeEvent::SessionSummarize {
                summarized_messages: upto,
                kept_messages: before - upto,
                summary_len,
                omitted_oversized,
            });
        }
        true
    }

    /// A request to sum up `transcript`.
    fn gate_notes(&self, transcript: String) -> LlmRequest {
        let settings = &self.runner.settings;
        LlmRequest {
            model: settings.model.clone(),
            messages: vec![
                Rendered::new(Message::text(Role::System, INSTRUCTION)),
                Rendered::new(Message::text(Role::User, transcript)),
            ],
            tools: Vec::new(),
            options: Object::new(),
            graceful_terminal: false,
        }
    }
}

fn percent(whole: usize, percent: usize) -> usize {
    whole.saturating_mul(percent) / 100
}

fn size(messages: &[Rendered<Message>]) -> usize {
    messages.iter().map(tokens).sum()
}

fn tokens(message: &Rendered<Message>) -> usize {
    let message = message.get();
    let calls: usize =
        message.tool_calls.iter().map(|part| part.function.arguments.len() + part.function.name.len()).sum();
    TOKENS_A_MESSAGE + (message.content.len() + message.reasoning_content.len() + calls) / BYTES_A_TOKEN
}

/// The messages as text, and whether any was left out or cut.
fn transcript(messages: &[Rendered<Message>]) -> (String, bool) {
    let mut cut = false;
    let lines: Vec<String> = messages.iter().map(|message| line(message.get(), &mut cut)).collect();
    let mut room = TRANSCRIPT_BYTES;
    // The newest of them matter most.
    let fits = lines.iter().rev().take_while(|line| {
        let fits = line.len() < room;
        room = room.saturating_sub(line.len());
        fits
    });
    let from = lines.len() - fits.count();
    (lines[from..].join("\n"), cut || from > 0)
}

fn line(message: &Message, cut: &mut bool) -> String {
    let who = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "agent",
        Role::Tool => "tool",
    };
    let mut text = format!("{who}: {}", excerpt(&message.content, cut));
    for part in &message.tool_calls {
        let arguments = excerpt(&part.function.arguments, cut);
        text.push_str(&format!("\n  calls {}({arguments})", part.function.name));
    }
    text
}

fn excerpt<'a>(text: &'a str, cut: &mut bool) -> &'a str {
    *cut |= text.len() > EXCERPT_BYTES;
    &text[..text.floor_char_boundary(EXCERPT_BYTES)]
}
