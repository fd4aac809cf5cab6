//! What became of what was said before: clients send everything again each time, and it leaves in the same bytes.

use std::collections::BTreeMap;
use std::ops::Range;

use jiff::Timestamp;

use crate::answer::Exchange;
use crate::request::{AnswerChain, SeenMessage, SeenRequest, Speaker};
use crate::spans::{Edits, Kind, Node};
use crate::spending::Spent;

mod chains;
mod items;
mod keys;

use chains::Chains;
pub use chains::{ChainOwner, MAX_CHAINS};
pub use keys::{KEPT_FOR, TextKey, key, prompt_key, result_key};

/// Most sessions that are kept; of those who have most of them, the one that was silent for longest is forgotten first.
pub const MAX_SESSIONS: usize = 1000;

/// Most texts, and most exchanges, of one session: a conversation of ten thousand messages fills every window.
pub const MAX_PER_SESSION: usize = 20_000;

/// The members of parts that are calls.
const CALLS: [&str; 2] = ["functionCall", "function_call"];

/// What stands in the place of a message that was refused.
pub const WITHHELD: &str = "[A message stood here that was refused.]";

/// What became of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptText {
    /// It goes on as it is.
    AsItWas,
    /// This goes on in its place.
    Changed(String),
    /// It goes no further.
    Refused,
}

/// What is kept of all sessions.
#[derive(Debug, Default)]
pub struct Keeper(BTreeMap<String, KeptSession>);

#[derive(Debug)]
struct KeptSession {
    last: Timestamp,
    turn: usize,
    texts: BTreeMap<TextKey, KeptText>,
    exchanges: Vec<Exchange>,
    /// Texts that stand behind results, by calls.
    notes: BTreeMap<String, String>,
    chains: Chains,
    spent: Spent,
}

/// What is new about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visited {
    /// Its session was not known.
    pub is_new: bool,
    /// Its turn was not known.
    pub is_new_turn: bool,
}

impl Keeper {
    /// Takes notice of a request of `session` in its turn number `turn`.
    pub fn visit(&mut self, session: &str, turn: usize, now: Timestamp) -> Visited {
        self.0.retain(|_, kept| now.duration_since(kept.last) < KEPT_FOR);
        let is_new = !self.0.contains_key(session);
        if is_new && self.0.len() >= MAX_SESSIONS {
            self.give_way();
        }
        let kept = self.session(session, now);
        let is_new_turn = is_new || kept.turn != turn;
        (kept.last, kept.turn) = (now, turn);
        Visited { is_new, is_new_turn }
    }

    /// Forgets a session: whoever begins many forgets their own.
    fn give_way(&mut self) {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in self.0.keys() {
            *counts.entry(whose(name)).or_default() += 1;
        }
        let Some((most, _)) = counts.into_iter().max_by_key(|(_, count)| *count) else { return };
        let theirs = self.0.iter().filter(|(name, _)| whose(name) == most);
        let oldest = theirs.min_by_key(|(_, kept)| kept.last).map(|(name, _)| name.clone());
        oldest.map(|oldest| self.0.remove(&oldest));
    }

    fn session(&mut self, session: &str, now: Timestamp) -> &mut KeptSession {
        let new = || KeptSession {
            last: now,
            turn: 0,
            texts: BTreeMap::new(),
            exchanges: Vec::new(),
            notes: BTreeMap::new(),
            chains: Chains::default(),
            spent: Spent::default(),
        };
        self.0.entry(session.to_owned()).or_insert_with(new)
    }

    /// What became of a text.
    pub fn text(&self, session: &str, key: &TextKey) -> Option<KeptText> {
        self.0.get(session)?.texts.get(key).cloned()
    }

    /// Keeps what became of a text.
    pub fn keep_text(&mut self, session: &str, key: TextKey, became: KeptText) {
        let Some(kept) = self.0.get_mut(session) else { return };
        if kept.texts.len() >= MAX_PER_SESSION {
            // Lost, hooks are asked again.
            kept.texts.clear();
        }
        kept.texts.insert(key, became);
    }

    /// The text that stands behind the result of a call.
    pub fn note(&self, session: &str, call: &str) -> Option<String> {
        self.0.get(session)?.notes.get(call).cloned()
    }

    /// Keeps a text that is to stand behind the result of a call.
    pub fn keep_note(&mut self, session: &str, call: &str, note: String) {
        if let Some(kept) = self.0.get_mut(session).filter(|kept| kept.notes.len() < MAX_PER_SESSION) {
            kept.notes.insert(call.to_owned(), note);
        }
    }

    /// What stands at the vendor up to the answer `key`, if it is known and not older than a day.
    pub fn chain(&self, key: &TextKey, now: Timestamp) -> Option<AnswerChain> {
        self.0.values().find_map(|kept| kept.chains.find(key, now))
    }

    /// Keeps what stands at the vendor up to the answer `key`.
    pub fn keep_chain(&mut self, session: &str, key: TextKey, chain: AnswerChain, now: Timestamp) {
        // An answer is the end of one conversation.
        self.0.values_mut().for_each(|kept| kept.chains.forget(&key));
        if let Some(kept) = self.0.get_mut(session) {
            kept.chains.keep(key, chain, now);
        }
    }

    /// What a session spent.
    pub fn spent(&self, session: &str) -> Spent {
        self.0.get(session).map(|kept| kept.spent).unwrap_or_default()
    }

    /// Adds what a session spent.
    pub fn spend(&mut self, session: &str, spent: Spent) {
        if let Some(kept) = self.0.get_mut(session) {
            kept.spent.add(spent);
        }
    }

    /// The exchanges of a session, the oldest first.
    pub fn exchanges(&self, session: &str) -> Vec<Exchange> {
        self.0.get(session).map(|kept| kept.exchanges.clone()).unwrap_or_default()
    }

    /// Keeps an exchange.
    pub fn keep_exchange(&mut self, session: &str, exchange: Exchange) {
        let Some(kept) = self.0.get_mut(session) else { return };
        if kept.exchanges.len() >= MAX_PER_SESSION {
            kept.exchanges.remove(0);
        }
        kept.exchanges.push(exchange);
    }
}

/// Whose the session of this name is: the door puts them before its last blank, where there are others.
fn whose(name: &str) -> &str {
    name.rsplit_once(' ').map_or("", |(space, _)| space)
}

/// How a wire puts calls and results of refused calls into a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutBack {
    /// Calls and results are parts of messages.
    Parts,
    /// Calls and results are parts of messages, and a call that came before all others stays before them: a seal of the
    /// vendor's may be on it.
    Turns,
    /// Calls are a member of a message, results messages.
    Messages,
    /// Messages, calls and results are items of one list.
    Items,
}

/// Puts the exchanges back into `request`: what the model said and was told stands there again, in the same bytes.
pub fn put_back(request: &SeenRequest, exchanges: &[Exchange], how: PutBack, edits: &mut Edits) {
    if how == PutBack::Items {
        return items::put_back(request, exchanges, edits);
    }
    let mut left: Vec<&Exchange> = exchanges.iter().collect();
    for (place, message) in request.messages.iter().enumerate() {
        if message.speaker != Speaker::Assistant {
            continue;
        }
        // Each is put back once: a model may say the same words again, and ids of calls stand for one call.
        let Some(at) = left.iter().position(|exchange| is_of(exchange, message)) else { continue };
        let exchange = left.remove(at);
        let following = &request.messages[place + 1..];
        let mut own = Edits::default();
        let Some(stays) = without_lead(message, exchange, &mut own) else { continue };
        if !put_denied(message, following, (exchange, how), &mut own) {
            continue;
        }
        let before = exchange.before.join(",");
        match (stays, before.is_empty()) {
            (false, _) => edits.replace(message.node.span.clone(), before),
            (true, is_empty) => {
                if !is_empty {
                    let at = message.node.span.start;
                    edits.replace(at..at, format!("{before},"));
                }
                edits.join(own);
            }
        }
    }
}

/// Whether `message` is what the client got of `exchange`.
fn is_of(exchange: &Exchange, message: &SeenMessage) -> bool {
    if !exchange.calls.is_empty() || !message.calls.is_empty() {
        let mut both = exchange.calls.iter().zip(&message.calls);
        return exchange.calls.len() == message.calls.len() && both.all(|(id, call)| call.is_known_as(id));
    }
    let text: String = message.texts.iter().map(|text| text.text.as_str()).collect();
    let (text, got) = (text.trim(), exchange.text.trim());
    !got.is_empty() && text == got
}

/// Takes out of `message` what stands in the messages before it. Says whether anything is left; nothing where it cannot
/// be found.
fn without_lead(message: &SeenMessage, exchange: &Exchange, edits: &mut Edits) -> Option<bool> {
    if exchange.before.is_empty() || (exchange.lead_text.is_empty() && exchange.lead_parts == 0) {
        return Some(true);
    }
    let content = message.content()?;
    let lead = exchange.lead_text.as_str();
    if let Kind::Array(parts) = &content.kind
        && exchange.lead_parts > 0
    {
        let first = message.texts.iter().filter(|text| text.part.is_some_and(|part| part < exchange.lead_parts));
        let said: String = first.map(|text| text.text.as_str()).collect();
        if said == lead && parts.len() >= exchange.lead_parts {
            edits.remove_items(content, &(0..exchange.lead_parts).collect::<Vec<_>>());
            return Some(parts.len() > exchange.lead_parts);
        }
    }
    // One text for all rounds.
    let [text] = message.texts.as_slice() else { return None };
    let rest = text.text.strip_prefix(lead).or_else(|| (text.text.trim() == lead.trim()).then_some(""))?;
    match (rest.trim().is_empty(), text.part) {
        (false, _) => edits.text(&text.node, rest),
        (true, _) if message.calls.is_empty() => return Some(false),
        (true, Some(part)) => edits.remove_items(content, &[part]),
        (true, None) => edits.replace(content.span.clone(), "null"),
    }
    Some(true)
}

/// Puts calls that were refused beside others, and their results, where these stand: in the same order as the calls,
/// because where calls have no ids, the model finds by that order which result is of which call.
fn put_denied(
    message: &SeenMessage,
    following: &[SeenMessage],
    (exchange, how): (&Exchange, PutBack),
    edits: &mut Edits,
) -> bool {
    if exchange.denied.is_empty() {
        return true;
    }
    match how {
        PutBack::Parts | PutBack::Turns => {
            let Some(next) = following.first() else { return false };
            let (Some(content), Some(results)) = (message.content(), next.content()) else { return false };
            let results = result_parts(next, results);
            let (Some(first_result), Some(last_result)) = (results.first(), results.last()) else { return false };
            let first = content.items().iter().find(|part| CALLS.iter().any(|name| part.get(name).is_some()));
            for denied in &exchange.denied {
                match first.filter(|_| denied.leads) {
                    Some(part) => {
                        edits.replace(part.span.start..part.span.start, format!("{},", denied.call));
                        edits.replace(first_result.span.start..first_result.span.start, format!("{},", denied.result));
                    }
                    None => {
                        edits.push_item(content, &denied.call);
                        edits.replace(last_result.span.end..last_result.span.end, format!(",{}", denied.result));
                    }
                }
            }
        }
        // Items were put back before.
        PutBack::Items => {}
        PutBack::Messages => {
            let Some(calls) = message.node.get("tool_calls").filter(|calls| calls.is_array()) else { return false };
            let last = following.iter().take_while(|message| !message.results.is_empty()).last().unwrap_or(message);
            let at = last.node.span.end;
            for denied in &exchange.denied {
                edits.push_item(calls, &denied.call);
                edits.replace(at..at, format!(",{}", denied.result));
            }
        }
    }
    true
}

/// The parts of `content` in which the results of `message` stand.
fn result_parts<'n>(message: &SeenMessage, content: &'n Node) -> Vec<&'n Node> {
    let mut results: Vec<Range<usize>> = message.results.iter().map(|result| result.whole.span.clone()).collect();
    results.sort_unstable_by_key(|span| span.start);
    content.items().iter().filter(|part| holds_any(&part.span, &results)).collect()
}

/// Whether one of `sorted`, which begin in this order and do not overlap, lies in `span`.
fn holds_any(span: &Range<usize>, sorted: &[Range<usize>]) -> bool {
    let first = sorted.partition_point(|own| own.start < span.start);
    sorted.get(first).is_some_and(|own| own.end <= span.end)
}

/// `body` with `messages` behind its conversation.
pub fn with_messages(request: &SeenRequest, messages: &[String]) -> String {
    let mut edits = Edits::default();
    if !request.list.is_array() {
        // A conversation that is one text, as somebody said it.
        let first = format!(r#"{{"role":"user","content":{}}}"#, request.document.raw(&request.list));
        let all: Vec<&str> = std::iter::once(first.as_str()).chain(messages.iter().map(String::as_str)).collect();
        edits.replace(request.list.span.clone(), format!("[{}]", all.join(",")));
        return edits.apply(&request.document.text);
    }
    for message in messages {
        edits.push_item(&request.list, message);
    }
    edits.apply(&request.document.text)
}

/// The name of a session, of what tells it apart; `space` are those whose it is, if there are others.
pub fn session_name(wire: &str, space: &str, claim: Option<&str>, request: &SeenRequest) -> String {
    let of = |speaker: Speaker| {
        let message = request.messages.iter().find(|message| message.speaker == speaker && !message.texts.is_empty());
        message.map(|message| message.texts.iter().map(|text| text.text.as_str()).collect::<String>())
    };
    let (system, user) = (of(Speaker::System).unwrap_or_default(), of(Speaker::User).unwrap_or_default());
    let own = [wire, claim.unwrap_or_default(), request.claim.as_deref().unwrap_or_default(), &system, &user];
    let whose = Some(space).filter(|space| !space.is_empty());
    let digest = key(&whose.into_iter().chain(own).collect::<Vec<_>>());
    let hex: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{wire}:{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_among_very_many_parts() {
        // Each beside each would be 10^10 looks.
        let of = |number: usize, bytes: usize| number * 10..number * 10 + bytes;
        let results: Vec<Range<usize>> = (0..100_000).map(|number| of(number * 2, 5)).collect();
        let found = (0..200_000).filter(|number| holds_any(&of(*number, 9), &results));
        assert!(found.eq((0..100_000).map(|number| number * 2)));
        for (span, expected) in
            [(0..5, true), (0..4, false), (1..30, true), (5..20, false), (2_000_000..9_000_000, false)]
        {
            assert_eq!(holds_any(&span, &results), expected, "{span:?}");
        }
    }

    #[test]
    fn whoever_begins_many_sessions_forgets_their_own() {
        let mut keeper = Keeper::default();
        let at = |second: usize| Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
        let ben = |number: usize| format!("b\nben openai:{number}");
        keeper.visit("a\nanna openai:1", 0, at(0));
        for number in 0..MAX_SESSIONS {
            keeper.visit(&ben(number), 0, at(1 + number));
        }
        let now = at(2 + MAX_SESSIONS);
        assert!(!keeper.visit("a\nanna openai:1", 0, now).is_new);
        assert!(!keeper.visit(&ben(1), 0, now).is_new);
        assert!(keeper.visit(&ben(0), 0, now).is_new);
    }
}
