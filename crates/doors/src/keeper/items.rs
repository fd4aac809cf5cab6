//! Conversations that are lists of items: what the client never got is put between those that it got.

use crate::answer::{Exchange, ItemMark, KeptItem};
use crate::request::{SeenMessage, SeenRequest, Speaker};
use crate::spans::Edits;

/// Puts the exchanges back into `request`, each where its items stand, in their order.
pub(super) fn put_back(request: &SeenRequest, exchanges: &[Exchange], edits: &mut Edits) {
    let mut from = 0;
    for exchange in exchanges {
        let found = (from..request.messages.len()).find_map(|start| Walk::over(request, start, &exchange.items));
        let Some(walk) = found else { continue };
        from = walk.at;
        edits.join(walk.edits);
    }
}

/// A way along the items of a request and those of an answer.
struct Walk<'r> {
    request: &'r SeenRequest,
    at: usize,
    /// What stands before the next item that is found.
    hidden: Vec<&'r str>,
    edits: Edits,
}

impl<'r> Walk<'r> {
    /// The way from `start`, if all items that no client leaves out stand there.
    fn over(request: &'r SeenRequest, start: usize, items: &'r [KeptItem]) -> Option<Self> {
        let mut walk = Self { request, at: start, hidden: Vec::new(), edits: Edits::default() };
        let mut is_known = false;
        for item in items {
            let Some(mark) = &item.seen else {
                walk.hidden.extend(item.sent.as_deref());
                continue;
            };
            let is_thought = matches!(mark, ItemMark::Thought(_));
            match walk.find(mark, is_known) {
                Some(place) => {
                    walk.pass(place, item.sent.as_deref());
                    is_known |= !is_thought;
                }
                None if is_thought => walk.hidden.extend(item.sent.as_deref()),
                None => return None,
            }
        }
        let last = walk.at.checked_sub(1).filter(|_| is_known)?;
        if !walk.hidden.is_empty() {
            let end = walk.request.messages[last].node.span.end;
            walk.edits.replace(end..end, format!(",{}", walk.hidden.join(",")));
        }
        Some(walk)
    }

    /// Where the item with `mark` stands; behind the first one, items of the vendor's may stand before it.
    fn find(&self, mark: &ItemMark, may_skip: bool) -> Option<usize> {
        for (place, message) in self.request.messages.iter().enumerate().skip(self.at) {
            if is_marked(self.request, message, mark) {
                return Some(place);
            }
            let says_nothing = message.texts.iter().all(|text| text.text.is_empty())
                && message.calls.is_empty()
                && message.results.is_empty();
            let is_of_vendor = message.speaker == Speaker::Assistant && says_nothing;
            if matches!(mark, ItemMark::Thought(_)) || !may_skip || !is_of_vendor {
                return None;
            }
        }
        None
    }

    /// Goes on behind the item at `place`, which leaves as `sent`, if that is said.
    fn pass(&mut self, place: usize, sent: Option<&str>) {
        let span = self.request.messages[place].node.span.clone();
        if !self.hidden.is_empty() {
            let hidden = std::mem::take(&mut self.hidden).join(",");
            self.edits.replace(span.start..span.start, format!("{hidden},"));
        }
        if let Some(sent) = sent {
            self.edits.replace(span, sent);
        }
        self.at = place + 1;
    }
}

fn is_marked(request: &SeenRequest, message: &SeenMessage, mark: &ItemMark) -> bool {
    let own = |name: &str| request.document.text_at(&message.node, name).filter(|text| !text.is_empty());
    match mark {
        ItemMark::Call(id) => message.calls.iter().any(|call| call.id == *id),
        ItemMark::Text { text, id } => {
            let said: String = message.texts.iter().map(|text| text.text.as_str()).collect();
            let is_other = own("id").zip(id.as_ref()).is_some_and(|(own, id)| own != *id);
            message.speaker == Speaker::Assistant && !said.is_empty() && said == *text && !is_other
        }
        ItemMark::Thought(name) => {
            own("type").as_deref() == Some("reasoning")
                && ["encrypted_content", "id"].iter().any(|member| own(member).as_ref() == Some(name))
        }
    }
}
