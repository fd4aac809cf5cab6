//! Media in a request to a model: the last thing that happens to it, after all hooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_domain::json::Rendered;
use pintle_domain::message::{Message, Role};
use pintle_domain::tool::UnusableMedia;

use super::mention::append;
use super::reference::SCHEME;
use super::{MAX_MEDIUM_BYTES, MediaError, MediaFile, TurnMedia, content_type, mention};

/// The most bytes of images in one request: two of the largest, which in base64 is more than most providers take.
const MAX_REQUEST_BYTES: u64 = 2 * MAX_MEDIUM_BYTES;

/// How much may still be sent.
struct Room {
    each: u64,
    all: u64,
}

impl TurnMedia {
    /// The messages of a request, as they go to a provider. Every reference becomes a tag such as `[image:PATH]` in the
    /// text of its message, and what cannot be used is named there. Images on messages of tools and of the user from the
    /// index `first` on, the current turn's, become `data:` URLs too, as long as one has at most `max_image_bytes` and all of them have
    /// room; the latest go first. Messages without media stay the very same; what is no reference stays as it is.
    pub fn in_request(
        &self,
        messages: &[Rendered<Message>],
        first: usize,
        max_image_bytes: u64,
    ) -> Vec<Rendered<Message>> {
        let mut room = Room { each: max_image_bytes.min(MAX_MEDIUM_BYTES), all: MAX_REQUEST_BYTES };
        let mut sent: Vec<_> = messages.to_vec();
        for (index, message) in sent.iter_mut().enumerate().rev() {
            if message.get().media.iter().any(|entry| entry.starts_with(SCHEME)) {
                let shows = index >= first && matches!(message.get().role, Role::Tool | Role::User);
                *message = Rendered::new(self.in_message(message.get(), shows.then_some(&mut room)));
            }
        }
        sent
    }

    /// `message` with its references resolved; images go along as far as there is `room`.
    fn in_message(&self, message: &Message, mut room: Option<&mut Room>) -> Message {
        let (mut files, mut media, mut unusable) = (Vec::new(), Vec::new(), Vec::new());
        for entry in &message.media {
            if !entry.starts_with(SCHEME) {
                media.push(entry.clone());
                continue;
            }
            let shown = self.find(entry).and_then(|file| {
                let url = room.as_deref_mut().map_or(Ok(None), |room| data_url(&file, room))?;
                media.extend(url);
                files.push(file);
                Ok(())
            });
            unusable.extend(shown.err().map(|why| why.of(entry)));
        }
        let mut content = mention(&message.content, &files);
        unusable
            .iter()
            .for_each(|unusable: &UnusableMedia| append(&mut content, &format!("media unavailable: {unusable}")));
        Message { content, media, ..message.clone() }
    }
}

/// The content of `file`, if it is an image that providers take and there is room for it.
fn data_url(file: &MediaFile, room: &mut Room) -> Result<Option<String>, MediaError> {
    if content_type::family(&file.content_type) != "image" || file.size_bytes > room.each.min(room.all) {
        return Ok(None);
    }
    let bytes = file.read()?;
    let Some(content_type) = content_type::seen(&bytes).filter(|seen| content_type::SENDABLE.contains(seen)) else {
        return Ok(None);
    };
    room.all -= file.size_bytes.min(room.all);
    let mut url = format!("data:{content_type};base64,");
    STANDARD.encode_string(&bytes, &mut url);
    Ok(Some(url))
}

/// Where in `after`, the messages that hooks left, the current turn begins, which in `before` began at `first`.
///
/// That is at the first of its messages that came through unchanged; if none did, at the first tool message that
/// answers one of its calls.
pub fn first_of_turn(before: &[Rendered<Message>], first: usize, after: &[Rendered<Message>]) -> usize {
    let turn = before.get(first..).unwrap_or_default();
    let same = |message: &Rendered<Message>| turn.iter().any(|own| own.is(message));
    let answers = |message: &Rendered<Message>| {
        let id = &message.get().tool_call_id;
        message.get().role == Role::Tool && turn.iter().any(|own| own.get().tool_call_id == *id)
    };
    let found = after.iter().position(same).or_else(|| after.iter().position(answers));
    found.unwrap_or(after.len())
}
