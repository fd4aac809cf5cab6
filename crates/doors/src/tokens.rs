//! What answers cost: counts of tokens, in the words of whichever vendor.

use crate::spans::{JsonDocument, Node};

/// Counts of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Those that the model read, the cached ones among them.
    pub read: u64,
    /// Those of them that it had read before.
    pub cached: u64,
    /// Those that it wrote, thoughts included.
    pub written: u64,
}

/// Most tokens that one count may say: a thousand times the largest window. What is said beyond it is no count.
const MAX_COUNT: u64 = 1 << 32;

/// The members of a usage that are added up to what was read. Anthropic counts what is cached beside the others.
const READ: [&[&str]; 6] = [
    &["input_tokens"],
    &["cache_creation_input_tokens"],
    &["cache_read_input_tokens"],
    &["prompt_tokens"],
    &["promptTokenCount"],
    &["toolUsePromptTokenCount"],
];

/// The members that say what was read before: each vendor has one of them.
const CACHED: [&[&str]; 4] = [
    &["cache_read_input_tokens"],
    &["prompt_tokens_details", "cached_tokens"],
    &["input_tokens_details", "cached_tokens"],
    &["cachedContentTokenCount"],
];

/// The members that are added up to what was written.
const WRITTEN: [&[&str]; 4] =
    [&["output_tokens"], &["completion_tokens"], &["candidatesTokenCount"], &["thoughtsTokenCount"]];

impl Tokens {
    /// What `usage` says.
    fn said(document: &JsonDocument, usage: &Node) -> Self {
        let one = |path: &&[&str]| {
            let (name, before) = path.split_last()?;
            Some(document.number_at(usage.at(before)?, name)?.min(MAX_COUNT))
        };
        let sum = |paths: &[&[&str]]| paths.iter().filter_map(one).sum();
        let read: u64 = sum(&READ);
        Self { read, cached: sum(&CACHED).min(read), written: sum(&WRITTEN) }
    }

    /// The larger of each: what is said again counts all until then.
    fn max(self, other: Self) -> Self {
        Self {
            read: self.read.max(other.read),
            cached: self.cached.max(other.cached),
            written: self.written.max(other.written),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            read: self.read.saturating_add(other.read),
            cached: self.cached.saturating_add(other.cached),
            written: self.written.saturating_add(other.written),
        }
    }

    /// What was read and written.
    pub const fn all(self) -> u64 {
        self.read.saturating_add(self.written)
    }
}

/// What is said of an answer, over all its rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    earlier: Tokens,
    round: Option<Tokens>,
    /// Whether nothing was said of an earlier round.
    lacks: bool,
}

impl Tally {
    /// Takes what `usage` says of this round, if it is there.
    pub(crate) fn take(&mut self, document: &JsonDocument, usage: Option<&Node>) {
        if let Some(usage) = usage.filter(|usage| document.raw(usage).starts_with('{')) {
            let said = Tokens::said(document, usage);
            self.round = Some(self.round.unwrap_or_default().max(said));
        }
    }

    /// Another round begins.
    pub(crate) fn next_round(&mut self) {
        self.lacks |= self.round.is_none();
        self.earlier = self.earlier.plus(self.round.take().unwrap_or_default());
    }

    /// All that was said, and whether it was said of every round.
    pub fn all(&self) -> (Tokens, bool) {
        (self.earlier.plus(self.round.unwrap_or_default()), !self.lacks && self.round.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vendor_is_read_in_its_words() {
        let tokens = |read, cached, written| Tokens { read, cached, written };
        for (usage, expected) in [
            (r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}"#, tokens(10, 0, 5)),
            (
                r#"{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens":5}"#,
                tokens(10, 4, 5),
            ),
            (r#"{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5}"#, tokens(10, 4, 5)),
            (
                r#"{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":4,"output_tokens":5}"#,
                tokens(17, 4, 5),
            ),
            (
                r#"{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":5,"thoughtsTokenCount":2}"#,
                tokens(10, 4, 7),
            ),
            (r#"{"prompt_tokens":"10","completion_tokens":-5}"#, tokens(0, 0, 0)),
            (r#"{"prompt_tokens":99999999999,"completion_tokens":5}"#, tokens(MAX_COUNT, 0, 5)),
        ] {
            let document = JsonDocument::read(usage.into()).unwrap();
            assert_eq!(Tokens::said(&document, &document.root), expected, "{usage}");
        }
    }

    #[test]
    fn what_is_said_again_counts_all_until_then_and_rounds_are_added_up() {
        let mut tally = Tally::default();
        let says = |tally: &mut Tally, text: &str| {
            let document = JsonDocument::read(text.into()).unwrap();
            tally.take(&document, document.root.get("usage"));
        };
        says(&mut tally, r#"{"usage":{"input_tokens":10,"output_tokens":1}}"#);
        says(&mut tally, r#"{"usage":{"output_tokens":5}}"#);
        says(&mut tally, r#"{"usage":null}"#);
        assert_eq!(tally.all(), (Tokens { read: 10, cached: 0, written: 5 }, true));
        tally.next_round();
        assert_eq!(tally.all(), (Tokens { read: 10, cached: 0, written: 5 }, false));
        says(&mut tally, r#"{"usage":{"input_tokens":20,"output_tokens":2}}"#);
        assert_eq!(tally.all(), (Tokens { read: 30, cached: 0, written: 7 }, true));
        tally.next_round();
        tally.next_round();
        says(&mut tally, r#"{"usage":{"input_tokens":1}}"#);
        assert!(!tally.all().1, "of one round nothing was said");
    }
}
