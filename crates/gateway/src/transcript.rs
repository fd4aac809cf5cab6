//! The messages of a conversation as clients are shown them, each with the turn that it stands in. Pure.

use std::collections::BTreeMap;

use pintle_domain::id::TurnId;
use pintle_domain::json::{Value, json};
use pintle_domain::message::{FROM_HOOK, Message, Role};
use pintle_domain::session::{JournalEntry, Session};
use pintle_domain::turn::Fact;

/// The messages that were said in the session of which `entries` tell, oldest first.
pub(crate) fn messages(entries: Vec<JournalEntry>) -> Vec<Value> {
    let begun = Begun::of(&entries);
    let session = Session::fold(entries);
    let mut now = None;
    let said = session.said().map(|message| {
        match begun.turn_of(message) {
            Some(turn) => now = Some(turn),
            // Somebody said it in a turn of which the journal does not tell.
            None if message.role == Role::User && message.origin != FROM_HOOK => now = None,
            None => {}
        }
        shown(message, now)
    });
    said.collect()
}

/// What people said, by when and what it was, with the turn that it began or came into.
struct Begun(BTreeMap<(String, String), TurnId>);

impl Begun {
    fn of(entries: &[JournalEntry]) -> Self {
        let mut begun = Self(BTreeMap::new());
        let mut open: Option<&TurnId> = None;
        for entry in entries {
            let JournalEntry::Turn(fact) = entry else { continue };
            match fact {
                Fact::Begun { turn_id, prompts, .. } => {
                    open = Some(turn_id);
                    prompts.iter().for_each(|prompt| begun.put(&prompt.message, turn_id));
                }
                // What waits for the next turn is among the prompts of that one, and is its then.
                Fact::Queued(waiting) => {
                    if let Some(turn) = open {
                        begun.put(&waiting.message.message, turn);
                    }
                }
                Fact::Ended { .. } => open = None,
                Fact::Recalled(_)
                | Fact::Equipped { .. }
                | Fact::Planned { .. }
                | Fact::Announced { .. }
                | Fact::Injected { .. }
                | Fact::Interrupted
                | Fact::Replied { .. }
                | Fact::Stopped { .. }
                | Fact::TakenBack
                | Fact::Used { .. }
                | Fact::Rewritten { .. }
                | Fact::Answered { .. }
                | Fact::Compacted { .. }
                | Fact::Trimmed { .. } => {}
            }
        }
        begun
    }

    fn put(&mut self, message: &Message, turn: &TurnId) {
        self.0.insert(place(message), turn.clone());
    }

    fn turn_of(&self, message: &Message) -> Option<&TurnId> {
        (message.role == Role::User).then(|| self.0.get(&place(message))).flatten()
    }
}

/// What tells a message from others of its conversation.
fn place(message: &Message) -> (String, String) {
    (message.created_at.clone().unwrap_or_default(), message.content.clone())
}

fn shown(message: &Message, turn: Option<&TurnId>) -> Value {
    let mut shown = json!({ "role": message.role, "content": message.content });
    if !message.reasoning_content.is_empty() {
        shown["thinking"] = json!(message.reasoning_content);
    }
    if !message.tool_calls.is_empty() {
        shown["tool_calls"] = json!(message.tool_calls);
    }
    if message.role == Role::Tool {
        shown["tool_call_id"] = json!(message.tool_call_id);
    }
    if !message.media.is_empty() {
        shown["media"] = json!(message.media);
    }
    if message.origin == FROM_HOOK {
        shown["origin"] = json!(message.origin);
    }
    if let Some(skill) = message.private.from.as_deref().and_then(|from| from.skill.as_deref()) {
        shown["skill"] = json!(skill);
    }
    if let Some(turn) = turn {
        shown["turn_id"] = json!(turn);
    }
    if let Some(at) = &message.created_at {
        shown["created_at"] = json!(at);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::checkpoint::runtime::TurnStatus;

    fn said(role: Role, text: &str, at: &str) -> Message {
        Message { created_at: Some(at.to_owned()), ..Message::text(role, text) }
    }

    fn begun(turn: &str, prompt: Message) -> JournalEntry {
        let turn_id = TurnId::new(turn);
        JournalEntry::Turn(Fact::Begun { turn_id, prompts: vec![prompt.into()], max_iterations: 9, key: None })
    }

    fn replied(text: &str) -> JournalEntry {
        JournalEntry::Turn(Fact::Replied {
            iteration: 1,
            message: said(Role::Assistant, text, "x").into(),
            read_only: Vec::new(),
            terminal: false,
            owners: BTreeMap::new(),
            cut: false,
            usage: None,
        })
    }

    fn ended() -> JournalEntry {
        let (status, error, reply) = (TurnStatus::Completed, None, String::new());
        JournalEntry::Turn(Fact::Ended { status, roll_back: false, error, reply })
    }

    #[test]
    fn each_message_stands_in_its_turn() {
        // The same words twice: they are told apart by when they were said.
        let entries = vec![
            begun("t1", said(Role::User, "go on", "1")),
            replied("first"),
            ended(),
            begun("t2", said(Role::User, "go on", "2")),
            replied("second"),
            ended(),
        ];
        let shown: Vec<(Value, Value)> =
            messages(entries).iter().map(|it| (it["content"].clone(), it["turn_id"].clone())).collect();
        let expected = [("go on", "t1"), ("first", "t1"), ("go on", "t2"), ("second", "t2")];
        assert_eq!(shown, expected.map(|(text, turn)| (json!(text), json!(turn))));
    }
}
