//! What holds for every turn on every wire.
//!
//! 2,000 turns by default; `PINTLE_LOWERING_CASES` says otherwise.

use pintle_domain::json::{Rendered, Value};
use pintle_domain::ledger::{MessageList, RemovalEffect as Fate};
use pintle_domain::message::{Lifetime, Message, Role};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::{CallKind, RemovalMode, TurnWire, is_note, lowered};
use super::linters::role;
use super::turns::{Script, play, scripts};
use super::wires::{Sent, Wire, wires};

/// Turns that are played if nobody says otherwise.
const CASES: u32 = 2_000;

const OPEN: &str = "<system-reminder";
const CLOSE: &str = "</system-reminder";

#[test]
fn every_turn_is_lowered_as_its_model_takes_it() {
    let cases = std::env::var("PINTLE_LOWERING_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let which = (0..wires().len(), any::<bool>());
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&(scripts(), which), |(script, (wire, strips))| {
        let removal = if strips { RemovalMode::StripReasoning } else { RemovalMode::Freeze };
        turn(&script, &wires()[wire], removal).map_err(TestCaseError::fail)
    });
    outcome.unwrap();
}

/// One call as it was sent.
struct Call {
    kind: CallKind,
    list: MessageList,
    sent: Sent,
}

fn turn(script: &Script, wire: &Wire, removal: RemovalMode) -> Result<(), String> {
    let kept = TurnWire::new(removal);
    let bound = wire.capabilities().prefix_bound_reasoning;
    let mut calls: Vec<Call> = Vec::new();
    let mut boundary: Option<Vec<String>> = None;
    for (kind, list) in play(script) {
        let appends = bound && kind == CallKind::Loop && removal == RemovalMode::Freeze;
        let how = wire.how(kind, &kept);
        let sent = wire.send(&list, &how);
        let whole = format!("{wire:?} {removal:?}\nlist {}\nsent {:#?}", listed(&list), sent);
        let because = |what: &str| format!("{what}\n{whole}");
        // Sent again, as after a failure: the same bytes.
        if wire.send(&list, &how) != sent {
            return Err(because("another try is another request"));
        }
        wire.lint(&sent.messages).map_err(|e| because(&e))?;
        prompt(&list, &sent, wire).map_err(|e| because(&e))?;
        tokens(&list, &sent, appends).map_err(|e| because(&e))?;
        marks(&list, &sent, appends).map_err(|e| because(&e))?;
        if let Some(last) = calls.last().filter(|last| appends && last.kind == CallKind::Loop) {
            begins_with(&units(&last.sent), &units(&sent)).map_err(|e| because(&e))?;
        }
        if bound && kind == CallKind::Loop {
            thoughts(&calls, &sent, wire, removal).map_err(|e| because(&e))?;
        }
        let (shared, all) = shared(&list, wire, kind, &kept);
        if let Some(before) = boundary.filter(|_| kind == CallKind::Loop) {
            begins_with(&before, &all).map_err(|e| because(&format!("boundary: {e}")))?;
        }
        boundary = (kind == CallKind::Loop).then_some(shared);
        fates(&calls, &list, &kept, (wire, appends)).map_err(|e| because(&e))?;
        calls.push(Call { kind, list, sent });
    }
    Ok(())
}

fn listed(list: &[Rendered<Message>]) -> String {
    let one = |message: &Rendered<Message>| {
        let message = message.get();
        let short = if message.private.lifetime == Lifetime::Passing { "*" } else { "" };
        format!("{:?}{short} {}", message.role, message.content)
    };
    list.iter().map(one).collect::<Vec<_>>().join(" | ")
}

/// Every string of a value.
fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => into.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|one| strings(one, into)),
        Value::Object(members) => members.values().for_each(|one| strings(one, into)),
    }
}

/// The tokens `[kind n]` in a text, but for those of thoughts.
fn tokens_in(text: &str) -> Vec<String> {
    let of = |rest: &str| {
        let end = rest.find(']')?;
        let token = &rest[..end];
        let digits = token.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let is = !digits.is_empty() && digits.len() < token.len() && digits.bytes().all(|b| b.is_ascii_digit());
        (is && !token.starts_with("th") && !token.starts_with("old")).then(|| token.to_owned())
    };
    text.match_indices('[').filter_map(|(at, _)| of(&text[at + 1..])).collect()
}

fn wire_tokens(sent: &Sent) -> Vec<String> {
    let mut all = Vec::new();
    for value in sent.system.iter().chain(&sent.messages) {
        strings(value, &mut all);
    }
    all.iter().flat_map(|text| tokens_in(text)).collect()
}

/// Nothing is lost, nothing comes twice, the order is that of the list; what left comes again only where it must.
fn tokens(list: &[Rendered<Message>], sent: &Sent, appends: bool) -> Result<(), String> {
    let wanted: Vec<String> = list.iter().flat_map(|message| tokens_in(&message.get().content)).collect();
    let found = wire_tokens(sent);
    let mut once = found.clone();
    once.sort();
    once.dedup();
    if once.len() != found.len() {
        return Err(format!("something is there twice: {found:?}"));
    }
    let known: Vec<String> = found.iter().filter(|token| wanted.contains(token)).cloned().collect();
    if known != wanted {
        return Err(format!("expected {wanted:?}, found {found:?}"));
    }
    let more: Vec<&String> = found.iter().filter(|token| !wanted.contains(token)).collect();
    match more.iter().any(|token| !appends || !token.starts_with('h')) {
        true => Err(format!("nobody wrote {more:?}")),
        false => Ok(()),
    }
}

/// The system prompt is what the operator set, and nothing else.
fn prompt(list: &[Rendered<Message>], sent: &Sent, wire: &Wire) -> Result<(), String> {
    let own = list.iter().take_while(|m| m.get().role == Role::System && m.get().private.from.is_none());
    let own: Vec<&str> = own.map(|message| message.get().content.as_str()).collect();
    let found: Vec<String> = match wire {
        Wire::Anthropic(_) => sent.system.iter().map(|b| b["text"].as_str().unwrap_or_default().to_owned()).collect(),
        Wire::OpenAi(it) | Wire::BySchema(it) => {
            let count = if it.alternation { own.len().min(1) } else { own.len() };
            sent.messages[..count].iter().map(|m| m["content"].as_str().unwrap_or_default().to_owned()).collect()
        }
    };
    if found.join("\n\n") != own.join("\n\n") {
        return Err(format!("the system prompt is {found:?}"));
    }
    if own.is_empty() && sent.messages.first().is_some_and(|first| role(first) == "system") {
        return Err("a text became the system prompt".into());
    }
    Ok(())
}

/// Between marks stand the texts of hooks that are not system messages, each as it is; nobody else writes marks.
fn marks(list: &[Rendered<Message>], sent: &Sent, appends: bool) -> Result<(), String> {
    let mut texts = Vec::new();
    let said = sent.messages.iter().filter(|message| role(message) != "system");
    said.for_each(|message| said_in(message, &mut texts));
    let mut between = Vec::new();
    for text in &texts {
        let mut rest = text.as_str();
        while let Some(at) = rest.find(&format!("{OPEN}>\n[")) {
            clean(&rest[..at], !between.is_empty())?;
            let inner = &rest[at + OPEN.len() + 2..];
            let end = inner.find(&format!("\n{CLOSE}>")).ok_or("a mark is not closed")?;
            between.push(inner[..end].to_owned());
            rest = &inner[end + CLOSE.len() + 2..];
        }
        clean(rest, !between.is_empty())?;
    }
    let system: Vec<String> = sent
        .messages
        .iter()
        .filter(|message| role(message) == "system")
        .flat_map(|message| {
            let mut all = Vec::new();
            strings(&message["content"], &mut all);
            all.into_iter().flat_map(|text| tokens_in(&text)).collect::<Vec<_>>()
        })
        .collect();
    for message in
        list.iter().map(Rendered::get).filter(|m| m.role == Role::System && tokens_in(&m.content)[0].starts_with('h'))
    {
        let safe = message.content.replace(CLOSE, "&lt;/system-reminder");
        let token = tokens_in(&message.content).remove(0);
        let (wrapped, placed) = (between.contains(&safe), system.contains(&token));
        if wrapped == placed || (is_note(message) && placed) {
            return Err(format!("{} is not where it belongs; between marks: {between:?}", message.content));
        }
    }
    let others = between
        .iter()
        .filter(|text| !list.iter().any(|m| m.get().content.replace(CLOSE, "&lt;/system-reminder") == **text));
    match others.count() > 0 && !appends {
        true => Err(format!("somebody else wrote between marks: {between:?}")),
        false => Ok(()),
    }
}

/// Every text in a message that users, models and tools may have written; thoughts are the model's own.
fn said_in(message: &Value, into: &mut Vec<String>) {
    let parts = message["content"].as_array().into_iter().flatten().filter(|part| part["type"] != "thinking");
    parts.for_each(|part| strings(part, into));
    into.extend(message["content"].as_str().map(str::to_owned));
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let arguments = call["function"]["arguments"].as_str().expect("arguments are text");
        strings(&pintle_domain::json::parse(arguments).expect("arguments are JSON"), into);
    }
}

/// Whether `text` has no marks of its own, where that matters.
fn clean(text: &str, matters: bool) -> Result<(), String> {
    match matters && (text.contains(OPEN) || text.contains(CLOSE)) {
        true => Err(format!("somebody else wrote a mark: {text}")),
        false => Ok(()),
    }
}

/// What a request consists of, piece by piece: merged neighbours count one by one.
fn units(sent: &Sent) -> Vec<String> {
    let mut all: Vec<String> = sent.system.iter().map(bare).collect();
    for message in &sent.messages {
        match message["content"].as_array() {
            Some(parts) => all.extend(parts.iter().map(|part| format!("{} {}", role(message), bare(part)))),
            None => all.push(format!("{} {} {}", role(message), message["content"], message["tool_calls"])),
        }
    }
    all
}

fn bare(block: &Value) -> String {
    let mut block = block.clone();
    if let Value::Object(members) = &mut block {
        members.shift_remove("cache_control");
    }
    block.to_string()
}

fn begins_with(before: &[String], all: &[String]) -> Result<(), String> {
    match all.starts_with(before) {
        true => Ok(()),
        false => Err(format!("it does not begin with\n{}", before.join("\n"))),
    }
}

/// Thoughts go back behind the words that they were thought behind, and only there.
fn thoughts(calls: &[Call], sent: &Sent, wire: &Wire, removal: RemovalMode) -> Result<(), String> {
    let Wire::Anthropic(_) = wire else { return Ok(()) };
    let all = units(sent);
    let of_turn = |unit: &String| unit.contains("\"thinking\":\"[th");
    let places: Vec<usize> = (0..all.len()).filter(|at| of_turn(&all[*at])).collect();
    for at in &places {
        let sent_before = calls.iter().any(|call| call.kind == CallKind::Loop && units(&call.sent) == all[..*at]);
        if !sent_before {
            return Err(format!("a thought stands behind other words: {}", all[*at]));
        }
    }
    let rounds = calls.iter().filter(|call| call.kind == CallKind::Loop).count();
    match removal == RemovalMode::Freeze && places.len() != rounds {
        true => Err(format!("{} thoughts of {rounds} came back", places.len())),
        false => Ok(()),
    }
}

/// The messages that the next call begins with, and all of them.
fn shared(list: &[Rendered<Message>], wire: &Wire, kind: CallKind, kept: &TurnWire) -> (Vec<String>, Vec<String>) {
    let lowered = lowered(list, &wire.how(kind, kept));
    // Whether marks of others are escaped depends on the rest of the request.
    let said = |message: &Message| format!("{:?} {}", message.role, message.content.replace("&lt;", "<"));
    let all: Vec<String> = lowered.spoken.iter().map(|one| said(&one.message)).collect();
    (all[..lowered.boundary.map_or(0, |at| at + 1)].to_vec(), all)
}

/// What is said of a text that left is what happened to it.
fn fates(
    calls: &[Call],
    list: &[Rendered<Message>],
    kept: &TurnWire,
    (wire, appends): (&Wire, bool),
) -> Result<(), String> {
    let Some(last) = calls.last() else { return Ok(()) };
    let gone = last
        .list
        .iter()
        .map(Rendered::get)
        .filter(|m| m.id().is_some() && !list.iter().any(|n| n.get().id() == m.id()));
    for message in gone {
        let id = message.id().ok_or("it has an identity")?;
        let marks = !wire.capabilities().turn_scoped.is_empty();
        let expected = match appends && last.kind == CallKind::Loop {
            true if marks && message.private.lifetime == Lifetime::Passing => Fate::Expired,
            true => Fate::Frozen,
            false => Fate::Removed,
        };
        if kept.fate(id) != expected {
            return Err(format!("{id} is {:?} and should be {expected:?}", kept.fate(id)));
        }
    }
    Ok(())
}
