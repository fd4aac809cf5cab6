//! Writes what hosts take: one JSON document, reasons that are never empty and never too long.

use pintle_domain::approval::{how_to_answer, told_meanwhile};
use pintle_domain::json::{Object, Value};

use crate::answer::{Answer, Degraded};
use crate::event::{HostEvent, HostWhat};
use crate::ruling::{GuardRuling, RulingWord};

/// The reason of a refusal that has none: several hosts do not take a refusal with an empty one.
pub const NO_REASON: &str = "refused by a hook, which gave no reason";

/// How long a text for the model may be that comes beside a call: hosts keep longer ones in files or drop them.
pub(crate) const MAX_CONTEXT_BYTES: usize = 8_000;

/// The longest reason where the host takes all of it: longer ones cost the model more than they tell it.
pub(crate) const MAX_REASON_BYTES: usize = 16_000;

/// How long the reason may be that stands beside a refusal for the person: it is one line of their screen or two.
const MAX_WHY_BYTES: usize = 300;

/// What stands where a text was cut.
const CUT: &str = " […]";

/// `text`, at most `max` bytes long, cut between characters.
pub(crate) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let mut end = max.saturating_sub(CUT.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT}", &text[..end])
}

/// The reason that a host is told: never empty, at most `max` bytes.
pub(crate) fn reason(text: &str, max: usize) -> String {
    if text.trim().is_empty() { NO_REASON.to_owned() } else { cut(text, max) }
}

/// What a ruling that stops says, where it is told as a refusal.
pub(crate) fn refusal(ruling: &GuardRuling) -> String {
    match ruling {
        GuardRuling::Deny { reason } | GuardRuling::AbortTurn { reason } | GuardRuling::AbortRun { reason } => {
            reason.clone()
        }
        GuardRuling::Ask { tool, approval, .. } => told_meanwhile(tool, approval),
        GuardRuling::Respond { by, text } => format!("answered by hook \"{by}\" in place of the tool: {text}"),
        GuardRuling::ModifyInput { arguments, .. } => format!(
            "a hook changed the arguments, which this agent does not let hooks do; call the tool with these: {}",
            Value::Object(arguments.clone())
        ),
        GuardRuling::ModifyPrompt { .. } => {
            "a hook changed the prompt, which this agent does not let hooks do".to_owned()
        }
        GuardRuling::ModifyRequest { .. } => {
            "a hook changed the request to the model, which this agent does not let hooks do here".to_owned()
        }
        GuardRuling::ModifyResult { .. } => {
            "a hook changed the result, which this agent does not let hooks do here".to_owned()
        }
        GuardRuling::Inject { .. } | GuardRuling::Allow | GuardRuling::NoObjection => String::new(),
    }
}

impl Answer {
    /// Nothing at all.
    pub(crate) fn silent() -> Self {
        Self::default()
    }

    /// One document.
    pub(crate) fn json(document: &Value) -> Self {
        Self { stdout: document.to_string(), ..Self::default() }
    }

    /// The same, which says that `ruling` became `to`, unless that is what it was.
    pub(crate) fn told(self, ruling: &GuardRuling, to: RulingWord) -> Self {
        let from = ruling.word();
        Self { degraded: (from != to).then_some(Degraded { from, to }), ..self }
    }
}

/// What one host takes at one event, form by form. `None`: it cannot be said there.
pub(crate) trait Speech {
    /// The longest reason that the host takes, in bytes.
    const MAX_REASON: usize = MAX_REASON_BYTES;

    /// No objection; `None` where the host wants silence.
    fn nothing(&self) -> Option<Value> {
        Some(Value::Object(Object::new()))
    }

    /// A refusal.
    fn deny(&self, reason: &str) -> Option<Value>;

    /// The end of the turn.
    fn abort(&self, _reason: &str) -> Option<Value> {
        None
    }

    /// That a person has said yes.
    fn allow(&self) -> Option<Value> {
        None
    }

    /// What the person before the host reads when a session begins in which everything will be refused.
    fn notice(&self, _text: &str) -> Option<Value> {
        None
    }

    /// `document` with a text that the person before the host reads and the model does not, where the host has a place for
    /// one.
    fn with_note(&self, document: Value, _text: &str) -> Value {
        document
    }

    /// A question to the person before the host.
    fn ask(&self, _reason: &str) -> Option<Value> {
        None
    }

    /// Other arguments, all of them.
    fn input(&self, _arguments: &Object, _context: Option<&str>) -> Option<Value> {
        None
    }

    /// Another prompt.
    fn prompt(&self, _text: &str) -> Option<Value> {
        None
    }

    /// Another request to the model.
    fn request(&self, _request: &Value) -> Option<Value> {
        None
    }

    /// Another result.
    fn result(&self, _text: &str, _shaped: Option<&Value>) -> Option<Value> {
        None
    }

    /// A text for the model.
    fn context(&self, _text: &str) -> Option<Value> {
        None
    }
}

/// What `ruling` is to a host that takes `speech` at `event`: itself, or the next stricter thing that can be said.
pub(crate) fn answer<S: Speech>(event: &HostEvent, speech: &S, ruling: &GuardRuling) -> Answer {
    let nothing = || speech.nothing().map_or_else(Answer::silent, |document| Answer::json(&document));
    if event.what.is_stop() && !matches!(ruling, GuardRuling::Deny { .. }) {
        // The turn ends here: a refusal would make it go on, so every other ruling is best served by silence.
        let is_met = matches!(ruling, GuardRuling::AbortTurn { .. } | GuardRuling::AbortRun { .. });
        return if is_met { nothing() } else { nothing().told(ruling, RulingWord::NoObjection) };
    }
    if event.what == HostWhat::SessionStart && ruling.stops() {
        // A session cannot be kept from beginning; a person sees why nothing will go on in it.
        let notice = speech.notice(&reason(&refusal(ruling), S::MAX_REASON));
        return notice.map_or_else(nothing, |document| Answer::json(&document)).told(ruling, RulingWord::NoObjection);
    }
    let said = match ruling {
        GuardRuling::NoObjection => return nothing(),
        GuardRuling::Allow => match speech.allow() {
            Some(document) => Some(document),
            // The host asks once more.
            None => return nothing().told(ruling, RulingWord::NoObjection),
        },
        GuardRuling::Inject { text } => speech.context(&cut(text, MAX_CONTEXT_BYTES)),
        GuardRuling::Ask { approval, reason: why, attended: true, .. } => {
            let why = reason(why, S::MAX_REASON.saturating_sub(approval.len() + 32));
            speech.ask(&format!("{why} (approval {approval})"))
        }
        GuardRuling::Deny { .. } | GuardRuling::Ask { .. } | GuardRuling::Respond { .. } => None,
        GuardRuling::ModifyInput { arguments, context } => {
            let context = context.as_deref().map(|text| cut(text, MAX_CONTEXT_BYTES));
            speech.input(arguments, context.as_deref())
        }
        GuardRuling::ModifyResult { text, shaped, added } => {
            // Nothing is lost of a result that stays, and what was said of it stands beside it.
            let beside = || speech.context(&cut(added.as_deref()?, MAX_CONTEXT_BYTES));
            speech.result(text, shaped.as_ref()).or_else(|| beside().filter(|_| event.what.is_done()))
        }
        GuardRuling::ModifyPrompt { text } => speech.prompt(text),
        GuardRuling::ModifyRequest { request } => speech.request(request),
        GuardRuling::AbortTurn { reason: why } => speech.abort(&reason(why, S::MAX_REASON)),
        GuardRuling::AbortRun { reason: why } => {
            let said = speech.abort(&reason(why, S::MAX_REASON));
            if let Some(document) = said {
                return Answer::json(&document).told(ruling, RulingWord::AbortTurn);
            }
            None
        }
    };
    match said {
        Some(document) => Answer::json(&document),
        None if matches!(ruling, GuardRuling::Inject { .. }) => nothing().told(ruling, RulingWord::NoObjection),
        None => refused(event, speech, ruling),
    }
}

/// `ruling` as a refusal; where there is none, as the end of the turn; where that cannot be said either, as the text of
/// the result beside the one that the model sees.
fn refused<S: Speech>(event: &HostEvent, speech: &S, ruling: &GuardRuling) -> Answer {
    let why = reason(&refusal(ruling), S::MAX_REASON);
    if let Some(document) = speech.deny(&why) {
        let document = match ruling {
            GuardRuling::Ask { tool, approval, reason, .. } => {
                speech.with_note(document, &how_to_answer(tool, approval, &cut(reason, MAX_WHY_BYTES)))
            }
            GuardRuling::Allow
            | GuardRuling::NoObjection
            | GuardRuling::Deny { .. }
            | GuardRuling::ModifyInput { .. }
            | GuardRuling::Respond { .. }
            | GuardRuling::ModifyResult { .. }
            | GuardRuling::ModifyPrompt { .. }
            | GuardRuling::ModifyRequest { .. }
            | GuardRuling::AbortTurn { .. }
            | GuardRuling::AbortRun { .. }
            | GuardRuling::Inject { .. } => document,
        };
        return Answer::json(&document).told(ruling, RulingWord::Deny);
    }
    if let Some(document) = speech.abort(&why) {
        return Answer::json(&document).told(ruling, RulingWord::AbortTurn);
    }
    if event.what.is_done()
        && let Some(document) = speech.context(&cut(&why, MAX_CONTEXT_BYTES))
    {
        return Answer::json(&document).told(ruling, RulingWord::Inject);
    }
    let nothing = speech.nothing().map_or_else(Answer::silent, |document| Answer::json(&document));
    nothing.told(ruling, RulingWord::NoObjection)
}
