//! Thoughts that stand in the text of an answer: `<think>…</think>` before what the model says. Servers that do not know
//! the template of a model leave them there.
//!
//! They are not part of the answer. What the provider wrote is kept beside the message, and goes back to that provider as
//! it came: some models are trained on seeing it again.

use std::borrow::Cow;

use pintle_domain::json::{Value, json};
use pintle_domain::message::Message;

use crate::{Delta, OnDelta};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The kind of block in which a message keeps what stood before its text.
pub(crate) const BLOCK: &str = "inline_thinking";

/// Parts thoughts from the text of an answer, however that is cut into pieces.
#[derive(Default)]
pub(crate) struct InlineThought {
    place: Place,
    /// What may still become a mark.
    held: String,
    /// Everything before the answer, as it came; empty where nothing was thought.
    raw: String,
    thought: String,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Place {
    /// Before the first word, or behind a thought.
    #[default]
    Before,
    Within,
    Answer,
}

impl InlineThought {
    /// Takes a piece of text. What belongs to the answer goes to `content`.
    pub(crate) fn feed(&mut self, piece: &str, content: &mut String, on_delta: OnDelta<'_>) {
        self.held.push_str(piece);
        while self.step(content, on_delta) {}
    }

    /// Takes one step; false where it needs more text.
    fn step(&mut self, content: &mut String, on_delta: OnDelta<'_>) -> bool {
        match self.place {
            Place::Before => {
                let blank = self.held.len() - self.held.trim_start().len();
                let word = &self.held[blank..];
                if word.starts_with(OPEN) {
                    self.pass(blank + OPEN.len());
                    self.place = Place::Within;
                } else if OPEN.starts_with(word) {
                    return false;
                } else {
                    self.begin_answer(blank);
                }
                true
            }
            Place::Within => {
                let end = self.held.find(CLOSE);
                let thought = self.held[..end.unwrap_or_else(|| kept_of(&self.held))].to_owned();
                if !thought.is_empty() {
                    self.thought.push_str(&thought);
                    on_delta(Delta::Reasoning(&thought));
                }
                self.pass(thought.len() + end.map_or(0, |_| CLOSE.len()));
                if end.is_some() {
                    self.place = Place::Before;
                }
                end.is_some()
            }
            Place::Answer => {
                let text = std::mem::take(&mut self.held);
                if !text.is_empty() {
                    content.push_str(&text);
                    on_delta(Delta::Text(&text));
                }
                false
            }
        }
    }

    /// What stands between a thought and the answer belongs to neither.
    fn begin_answer(&mut self, blank: usize) {
        if !self.raw.is_empty() {
            self.pass(blank);
        }
        self.place = Place::Answer;
    }

    /// The next bytes are none of the answer.
    fn pass(&mut self, bytes: usize) {
        self.raw.extend(self.held.drain(..bytes));
    }

    /// The text is over. What was thought, and the block that keeps it as it came.
    pub(crate) fn finish(mut self, content: &mut String, on_delta: OnDelta<'_>) -> (String, Option<Value>) {
        match self.place {
            Place::Before => {
                let blank = self.held.len() - self.held.trim_start().len();
                self.begin_answer(blank);
            }
            // What looked like the beginning of its end was thought, too.
            Place::Within => {
                let rest = self.held.clone();
                self.thought.push_str(&rest);
                self.pass(rest.len());
            }
            Place::Answer => {}
        }
        if self.place == Place::Answer {
            self.step(content, on_delta);
        }
        let block = (!self.raw.is_empty()).then(|| json!({"type": BLOCK, "text": self.raw}));
        (self.thought.trim().to_owned(), block)
    }
}

/// How much of `text` cannot be a part of the mark that ends a thought.
fn kept_of(text: &str) -> usize {
    let ends_so = |length: &usize| text.ends_with(&CLOSE[..*length]);
    text.len() - (1..CLOSE.len()).rev().find(ends_so).unwrap_or(0)
}

/// The text of `message` as its provider wrote it.
pub(crate) fn as_written(message: &Message) -> Cow<'_, str> {
    let block = message.private.blocks.iter().find(|block| block["type"] == BLOCK);
    match block.and_then(|block| block["text"].as_str()) {
        Some(before) => Cow::Owned(format!("{before}{}", message.content)),
        None => Cow::Borrowed(&message.content),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// The answer, the thought and what is kept of `pieces`; and what was shown of them.
    fn parted(pieces: &[&str]) -> (String, String, String) {
        let shown = Mutex::new((String::new(), String::new()));
        let on_delta = |delta: Delta<'_>| match delta {
            Delta::Text(text) => shown.lock().unwrap().0.push_str(text),
            Delta::Reasoning(text) => shown.lock().unwrap().1.push_str(text),
            Delta::Sent => {}
        };
        let (mut parting, mut content) = (InlineThought::default(), String::new());
        pieces.iter().for_each(|piece| parting.feed(piece, &mut content, &on_delta));
        let (thought, block) = parting.finish(&mut content, &on_delta);
        let (said, _) = &*shown.lock().unwrap();
        assert_eq!(*said, content, "{pieces:?}");
        let raw = block.map(|block| block["text"].as_str().unwrap().to_owned()).unwrap_or_default();
        assert_eq!(raw.clone() + &content, pieces.concat(), "nothing is lost");
        (content, thought, raw)
    }

    #[test]
    fn a_thought_before_the_answer_is_none_of_it_however_it_is_cut() {
        for (text, content, thought) in [
            ("hello", "hello", ""),
            ("", "", ""),
            ("  \n", "  \n", ""),
            (" hello", " hello", ""),
            ("<think>hm</think>hello", "hello", "hm"),
            ("\n<think>\nhm <b>\n</think>\n\nhello <think>x</think>", "hello <think>x</think>", "hm <b>"),
            ("<think></think>\n\nhello", "hello", ""),
            ("<think>a</think> <think>b</think>c", "c", "ab"),
            ("<think>never ends </thi", "", "never ends </thi"),
            ("<think>only</think>\n", "", "only"),
            ("<thin", "<thin", ""),
            ("<thinking>x</thinking>", "<thinking>x</thinking>", ""),
            ("a <think>b</think>", "a <think>b</think>", ""),
            ("x</think>y", "x</think>y", ""),
            ("<think>é</think>ü", "ü", "é"),
        ] {
            let chars: Vec<String> = text.chars().map(String::from).collect();
            let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
            for pieces in [vec![text], chars] {
                let (said, thinks, _) = parted(&pieces);
                assert_eq!((said.as_str(), thinks.as_str()), (content, thought), "{pieces:?}");
            }
        }
    }
}
