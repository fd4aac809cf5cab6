//! An answer as one JSON document.

use std::collections::VecDeque;

use super::call::{NOT_SAID, WrittenCall};
use super::form;
use super::texts::ChoiceTexts;
use super::{BETWEEN, message_of, result};
use crate::answer::{
    AnswerMachine, AnswerStep, CallRuling, DeniedCall, DenyMode, Exchange, MAX_ROUNDS, NO_ARGUMENTS, refusal_result,
    refusal_text,
};
use crate::spans::{Edits, JsonDocument, Node};
use crate::strict::{MAX_HELD_BYTES, TOO_MUCH};
use crate::tokens::Tally;

/// Counts that are summed over rounds.
const COUNTS: [&str; 3] = ["prompt_tokens", "completion_tokens", "total_tokens"];

/// A call by the places of its choice and its own.
type CallPlace = (usize, usize);

/// One answer that comes whole, over all rounds of it.
#[derive(Debug)]
pub struct WholeCompletion {
    mode: DenyMode,
    /// How many choices the request asked for.
    choices: u64,
    body: Vec<u8>,
    document: Option<JsonDocument>,
    steps: VecDeque<AnswerStep>,
    waiting: VecDeque<(CallPlace, WrittenCall)>,
    ruled: Vec<(CallPlace, WrittenCall, CallRuling)>,
    asked: bool,
    ended: bool,
    over: bool,
    said: ChoiceTexts,
    earlier: Earlier,
}

#[derive(Debug, Default)]
struct Earlier {
    rounds: usize,
    tally: Tally,
    id: Option<String>,
    text: String,
    counts: [u64; 3],
    before: Vec<String>,
}

impl WholeCompletion {
    /// An answer whose refused calls are told as `mode` says.
    pub fn new(mode: DenyMode) -> Self {
        Self {
            mode,
            choices: 1,
            body: Vec::new(),
            document: None,
            steps: VecDeque::new(),
            waiting: VecDeque::new(),
            ruled: Vec::new(),
            asked: false,
            ended: false,
            over: false,
            said: ChoiceTexts::default(),
            earlier: Earlier::default(),
        }
    }

    /// The answer to a request that asked for so many choices.
    #[must_use]
    pub const fn of_choices(mut self, choices: u64) -> Self {
        self.choices = choices;
        self
    }

    fn read(&mut self) -> Result<(), String> {
        if self.body.len() > MAX_HELD_BYTES {
            return Err(TOO_MUCH.into());
        }
        let text = std::str::from_utf8(&self.body).map_err(|_| "the answer is not UTF-8".to_owned())?;
        let document =
            JsonDocument::read(text.to_owned()).map_err(|error| format!("the answer cannot be read: {error}"))?;
        for (place, choice) in form::choices(&document, "message", self.choices)?.iter().enumerate() {
            let calls = choice.at(&["message", "tool_calls"]).map(Node::items).unwrap_or_default();
            for (own, call) in calls.iter().enumerate() {
                let mut written = WrittenCall::default();
                written.grow(form::call(&document, call)?)?;
                self.waiting.push_back(((place, own), written));
            }
        }
        self.earlier.tally.take(&document, document.root.get("usage"));
        self.document = Some(document);
        Ok(())
    }

    fn conclude(&mut self, document: &JsonDocument) {
        let ruled: Vec<_> = std::mem::take(&mut self.ruled).into_iter().map(sayable).collect();
        let all = choices(document);
        let says = |name: &str| all.iter().filter_map(|it| it.get("message")).any(|it| document.says(it, name));
        let is_bound = all.len() > 1 || says("reasoning_details");
        let is_aborted = ruled.iter().any(|(_, _, ruling)| matches!(ruling, CallRuling::Aborted(_)));
        let refused = ruled.iter().filter(|(_, _, ruling)| reason(ruling).is_some()).count();
        let passes = refused < ruled.len();
        let finish = all.first().and_then(|choice| document.text_at(choice, "finish_reason"));
        let answers = self.mode == DenyMode::Answer && self.earlier.rounds < MAX_ROUNDS && !is_bound && !is_aborted;
        if refused > 0 && !passes && answers && finish.as_deref() == Some("tool_calls") {
            return self.go_on(document, &ruled);
        }
        let (mut edits, mut kept, mut own_text) = (Edits::default(), Vec::new(), String::new());
        for (place, choice) in all.iter().enumerate() {
            let own: Vec<_> = ruled.iter().filter(|(at, _, _)| at.0 == place).collect();
            let Some(message) = choice.get("message") else { continue };
            let before = document.text_at(message, "content").unwrap_or_default();
            let (mut text, mut gone) = (before.clone(), Vec::new());
            for (at, call, ruling) in &own {
                if let CallRuling::Rewritten(with) = ruling {
                    rewrite(&mut edits, message, (at.1, call), with);
                }
                let Some(reason) = reason(ruling) else { continue };
                gone.push(at.1);
                if answers && passes {
                    let result = result(&call.id, &refusal_result(reason));
                    kept.push(DeniedCall { call: call.told(), result, leads: false });
                    continue;
                }
                let between = if text.is_empty() { "" } else { BETWEEN };
                text = format!("{text}{between}{}", refusal_text(&call.name, reason));
            }
            tell(&mut edits, (document, choice), (own.len(), &gone));
            let merged = self.merged(&text, place);
            if merged != before {
                match message.get("content") {
                    Some(node) => edits.text(node, &merged),
                    None => edits.put_member(
                        message,
                        "content",
                        &pintle_domain::json::Value::from(merged.as_str()).to_string(),
                    ),
                }
            }
            if place == 0 {
                own_text.clone_from(&merged);
            }
            *self.said.of(u64::try_from(place).unwrap_or(u64::MAX)) = merged;
        }
        self.merge(document, &mut edits);
        let passed = ruled.iter().filter(|(_, _, ruling)| reason(ruling).is_none());
        let calls = passed.map(|(_, call, _)| call.id.clone()).collect();
        self.finish(document, edits, Exchange { calls, text: own_text, denied: kept, ..Exchange::default() });
    }

    fn finish(&mut self, document: &JsonDocument, edits: Edits, exchange: Exchange) {
        let body = if edits.is_empty() { document.text.clone() } else { edits.apply(&document.text) };
        let between = match exchange.text.len() > self.earlier.text.len() && !self.earlier.text.is_empty() {
            true => BETWEEN,
            false => "",
        };
        let exchange = Exchange {
            before: std::mem::take(&mut self.earlier.before),
            lead_text: format!("{}{between}", self.earlier.text),
            ..exchange
        };
        self.steps.push_back(AnswerStep::Send(body.into_bytes()));
        self.steps.push_back(AnswerStep::Done(Some(exchange).filter(|exchange| !exchange.is_empty())));
        self.over = true;
    }

    /// `text` behind that of earlier rounds.
    fn merged(&self, text: &str, choice: usize) -> String {
        match (self.earlier.text.as_str(), text) {
            (earlier, "") if choice == 0 => earlier.to_owned(),
            ("", text) => text.to_owned(),
            (earlier, text) if choice == 0 => format!("{earlier}{BETWEEN}{text}"),
            (_, text) => text.to_owned(),
        }
    }

    fn merge(&self, document: &JsonDocument, edits: &mut Edits) {
        if self.earlier.rounds == 0 {
            return;
        }
        if let (Some(id), Some(node)) = (&self.earlier.id, document.root.get("id")) {
            edits.text(node, id);
        }
        let Some(usage) = document.root.get("usage") else { return };
        for (name, earlier) in COUNTS.iter().zip(self.earlier.counts) {
            if let Some(node) = usage.get(name) {
                let now = document.number_at(usage, name).unwrap_or_default();
                edits.replace(node.span.clone(), (now + earlier).to_string());
            }
        }
    }

    fn go_on(&mut self, document: &JsonDocument, ruled: &[(CallPlace, WrittenCall, CallRuling)]) {
        let message = choices(document).first().and_then(|choice| choice.get("message"));
        let text = message.and_then(|message| document.text_at(message, "content")).unwrap_or_default();
        let calls: Vec<String> = ruled.iter().map(|(_, call, _)| call.told()).collect();
        let results = ruled
            .iter()
            .filter_map(|(_, call, ruling)| reason(ruling).map(|reason| result(&call.id, &refusal_result(reason))));
        let messages: Vec<String> = std::iter::once(message_of(&text, &calls)).chain(results).collect();
        self.earlier.text = self.merged(&text, 0);
        let earlier = &mut self.earlier;
        earlier.rounds += 1;
        earlier.tally.next_round();
        earlier.id.get_or_insert_with(|| document.text_at(&document.root, "id").unwrap_or_default());
        earlier.before.extend(messages.iter().cloned());
        if let Some(usage) = document.root.get("usage") {
            for (name, sum) in COUNTS.iter().zip(&mut earlier.counts) {
                *sum += document.number_at(usage, name).unwrap_or_default();
            }
        }
        (self.body, self.document, self.ended) = (Vec::new(), None, false);
        self.steps.push_back(AnswerStep::GoOn(messages));
    }
}

/// Takes refused calls out of a choice, and says how it ends then.
fn tell(edits: &mut Edits, (document, choice): (&JsonDocument, &Node), (all, gone): (usize, &[usize])) {
    let Some(list) = choice.at(&["message", "tool_calls"]).filter(|_| !gone.is_empty()) else { return };
    match gone.len() == all {
        true => edits.replace(list.span.clone(), "null"),
        false => edits.remove_items(list, gone),
    }
    if let Some(node) = choice.get("finish_reason").filter(|_| gone.len() == all)
        && document.string(node).as_deref() == Some("tool_calls")
    {
        edits.text(node, "stop");
    }
}

/// A ruling that the call can say.
fn sayable((place, call, ruling): (CallPlace, WrittenCall, CallRuling)) -> (CallPlace, WrittenCall, CallRuling) {
    let is_sayable = match &ruling {
        CallRuling::Rewritten(with) => call.rewritten(with).is_some(),
        CallRuling::Allowed | CallRuling::Denied(_) | CallRuling::Aborted(_) => true,
    };
    let ruling = if is_sayable { ruling } else { CallRuling::Denied(NOT_SAID.into()) };
    (place, call, ruling)
}

fn rewrite(
    edits: &mut Edits,
    message: &Node,
    (place, call): (usize, &WrittenCall),
    with: &pintle_domain::json::Object,
) {
    let list = message.get("tool_calls").map(Node::items).unwrap_or_default();
    let (kind, member) = if call.is_custom { ("custom", "input") } else { ("function", "arguments") };
    let (Some(inner), Some(text)) = (list.get(place).and_then(|node| node.get(kind)), call.rewritten(with)) else {
        return;
    };
    match inner.get(member) {
        Some(node) => edits.text(node, &text),
        None => edits.put_member(inner, member, &pintle_domain::json::Value::from(text).to_string()),
    }
}

fn choices(document: &JsonDocument) -> &[Node] {
    document.root.get("choices").map(Node::items).unwrap_or_default()
}

const fn reason(ruling: &CallRuling) -> Option<&String> {
    match ruling {
        CallRuling::Denied(reason) | CallRuling::Aborted(reason) => Some(reason),
        CallRuling::Allowed | CallRuling::Rewritten(_) => None,
    }
}

impl AnswerMachine for WholeCompletion {
    fn feed(&mut self, bytes: &[u8]) {
        // One byte too many says that it is too much.
        let left = (MAX_HELD_BYTES + 1).saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..bytes.len().min(left)]);
    }

    fn end(&mut self) {
        self.ended = true;
    }

    fn next(&mut self) -> Option<AnswerStep> {
        if let Some(step) = self.steps.pop_front() {
            return Some(step);
        }
        if self.asked || self.over || !self.ended {
            return None;
        }
        if self.document.is_none()
            && let Err(why) = self.read()
        {
            self.over = true;
            return Some(AnswerStep::Broken(why));
        }
        if let Some((place, call)) = self.waiting.front() {
            if let Some(wanted) = call.wanted() {
                self.asked = true;
                return Some(AnswerStep::Rule(wanted));
            }
            let unread = AnswerStep::unread(&call.id, &call.name);
            self.ruled.push((*place, call.clone(), CallRuling::Aborted(NO_ARGUMENTS.into())));
            self.waiting.pop_front();
            return Some(unread);
        }
        if let Some(document) = self.document.take() {
            self.conclude(&document);
        }
        self.steps.pop_front()
    }

    fn rule(&mut self, ruling: CallRuling) {
        self.asked = false;
        if let Some((place, call)) = self.waiting.pop_front() {
            self.ruled.push((place, call, ruling));
        }
    }

    fn said(&self) -> String {
        self.said.all("")
    }

    fn tally(&self) -> Tally {
        self.earlier.tally
    }

    fn keep_alive(&self) -> Option<&'static [u8]> {
        None
    }
}
