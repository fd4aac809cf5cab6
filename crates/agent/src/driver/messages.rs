//! The messages that a turn makes itself.

use pintle_domain::chain::Note;
use pintle_domain::message::{Message, Role};

/// A message of the user's.
pub(super) fn user(text: String) -> Message {
    Message { created_at: Some(now()), ..Message::text(Role::User, text) }
}

/// What hooks want the model to read, as messages.
pub(super) fn messages_of(notes: Vec<Note>) -> impl Iterator<Item = Message> {
    notes.into_iter().map(|note| Message { created_at: Some(now()), ..Message::note(note.by.as_str(), &note.text) })
}

/// The moment, as messages carry it.
pub(super) fn now() -> String {
    jiff::Timestamp::now().to_string()
}
