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

/// The members in which a request says how much may be written at most.
const MOST_WRITTEN: [&[&str]; 4] =
    [&["max_tokens"], &["max_completion_tokens"], &["max_output_tokens"], &["generationConfig", "maxOutputTokens"]];

/// The members in which a request says how many answers it wants.
const ANSWERS: [&[&str]; 2] = [&["n"], &["generationConfig", "candidateCount"]];

/// Most tokens that a request is taken to have read: the window of most models. Pictures are long as text.
const WINDOW: u64 = 200_000;

/// How much is taken to be written where a request does not say it: few answers are longer.
const WRITTEN_UNSAID: u64 = 4096;

/// Most tokens that one answer is taken to write: what the largest models write at most.
const LONGEST: u64 = 128_000;

impl Tokens {
    /// What a request may come to: what it says that may be written, and what its length says that is read, beside the
    /// `before` tokens that stand at the vendor.
    pub(crate) fn most(document: &JsonDocument, before: u64) -> Self {
        let one = |path: &&[&str]| {
            let (name, before) = path.split_last()?;
            document.number_at(document.root.at(before)?, name)
        };
        let each = MOST_WRITTEN.iter().filter_map(one).max().unwrap_or(WRITTEN_UNSAID).min(LONGEST);
        let answers = ANSWERS.iter().filter_map(one).max().unwrap_or(1).max(1);
        let read = guessed(document.text.len()).saturating_add(before).min(WINDOW);
        Self { read, cached: 0, written: each.saturating_mul(answers).min(MAX_COUNT) }
    }

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

/// How many bytes are guessed to be a token, where a vendor does not say what an answer cost.
const BYTES_OF_A_TOKEN: usize = 4;

/// How many tokens `bytes` are guessed to be.
const fn guessed(bytes: usize) -> u64 {
    (bytes / BYTES_OF_A_TOKEN) as u64
}

/// How long an answer is, by which its cost is guessed where the vendor does not say it, or not all of it.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    sent: usize,
    came: usize,
    /// How many tokens stand at the vendor, which reads them each time.
    before: u64,
    /// How many of them it read so far.
    read: u64,
    /// What the vendor had said when it was last looked.
    said: Tokens,
    /// How many bytes came since.
    untold: usize,
    is_paid: bool,
}

impl Meter {
    /// That of an answer to a request of `sent` bytes, behind `before` tokens that stand at the vendor.
    pub(crate) fn of(sent: usize, before: u64) -> Self {
        Self { sent, before, read: before, ..Self::default() }
    }

    /// More was sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes);
        self.read = self.read.saturating_add(self.before);
    }

    /// More comes; `tally` is of what came before.
    pub(crate) fn came(&mut self, bytes: usize, tally: Tally) {
        self.look(tally);
        self.came = self.came.saturating_add(bytes);
        self.untold = self.untold.saturating_add(bytes);
    }

    fn look(&mut self, tally: Tally) {
        let (said, _) = tally.all();
        if said != self.said {
            (self.said, self.untold) = (said, 0);
        }
    }

    /// How many tokens stand at the vendor once it keeps the answer to one request.
    pub(crate) fn stands(&self, tally: Tally) -> u64 {
        match tally.all() {
            (said, true) => said.all(),
            (_, false) => self.all_read().saturating_add(guessed(self.came)),
        }
    }

    /// How much is guessed to have been read.
    const fn all_read(&self) -> u64 {
        guessed(self.sent).saturating_add(self.read)
    }

    /// What is to be paid, once, and whether the vendor said all of it. Vendors say at the beginning what was read, and at
    /// the end what was written: whoever leaves before has had what came.
    pub(crate) fn bill(&mut self, tally: Tally, is_whole: bool) -> Option<(Tokens, bool)> {
        if std::mem::replace(&mut self.is_paid, true) {
            return None;
        }
        self.look(tally);
        let (said, is_told) = tally.all();
        let tokens = match (is_told, is_whole) {
            (true, true) => said,
            (true, false) => Tokens { written: said.written.saturating_add(guessed(self.untold)), ..said },
            (false, _) => {
                let (read, written) = (said.read.max(self.all_read()), said.written.max(guessed(self.came)));
                Tokens { read, written, ..said }
            }
        };
        Some((tokens, is_told && is_whole))
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
    fn what_a_request_may_come_to_is_what_it_says_in_any_wire() {
        for (request, written) in [
            (r#"{"max_tokens":100}"#, 100),
            (r#"{"max_completion_tokens":100,"n":3}"#, 300),
            (r#"{"max_output_tokens":100,"n":0}"#, 100),
            (r#"{"generationConfig":{"maxOutputTokens":100,"candidateCount":2}}"#, 200),
            (r#"{"max_tokens":null}"#, WRITTEN_UNSAID),
            (r#"{"max_tokens":9999999999}"#, LONGEST),
        ] {
            let document = JsonDocument::read(request.into()).unwrap();
            let read = (request.len() / BYTES_OF_A_TOKEN) as u64;
            assert_eq!(Tokens::most(&document, 0), Tokens { read, cached: 0, written }, "{request}");
            assert_eq!(Tokens::most(&document, 90).read, read + 90, "what stands at the vendor is read again");
        }
        let long = JsonDocument::read(format!(r#"{{"picture":"{}"}}"#, "a".repeat(1 << 20))).unwrap();
        assert_eq!(Tokens::most(&long, 90), Tokens { read: WINDOW, cached: 0, written: WRITTEN_UNSAID });
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

    #[test]
    fn what_came_is_paid_also_where_nobody_waits_for_the_end() {
        let said = |texts: &[&str]| {
            let mut tally = Tally::default();
            for text in texts {
                let document = JsonDocument::read((*text).to_owned()).unwrap();
                tally.take(&document, document.root.get("usage"));
            }
            tally
        };
        let begun = r#"{"usage":{"input_tokens":10,"output_tokens":1}}"#;
        let ended = r#"{"usage":{"output_tokens":50}}"#;
        let mut cut = Meter::of(400, 0);
        cut.came(100, said(&[]));
        cut.came(4000, said(&[begun]));
        assert_eq!(cut.bill(said(&[begun]), false), Some((Tokens { read: 10, cached: 0, written: 1001 }, false)));
        assert_eq!(cut.bill(said(&[begun]), false), None, "once");
        // Whoever closes it between the last word on its cost and the end pays what it cost.
        let mut late = Meter::of(400, 0);
        late.came(4000, said(&[begun]));
        assert_eq!(late.bill(said(&[begun, ended]), false), Some((Tokens { read: 10, cached: 0, written: 50 }, false)));
        let mut whole = Meter::of(400, 0);
        whole.came(4000, said(&[begun]));
        assert_eq!(whole.bill(said(&[begun, ended]), true), Some((Tokens { read: 10, cached: 0, written: 50 }, true)));
        let mut silent = Meter::of(400, 0);
        silent.came(4000, said(&[]));
        silent.sent(400);
        assert_eq!(silent.bill(said(&[]), true), Some((Tokens { read: 200, cached: 0, written: 1000 }, false)));
        // What stands at the vendor is read once a round.
        let mut behind = Meter::of(400, 90);
        behind.came(4000, said(&[]));
        assert_eq!((behind.stands(said(&[])), behind.stands(said(&[begun, ended]))), (1190, 60));
        behind.sent(400);
        assert_eq!(behind.bill(said(&[]), true), Some((Tokens { read: 380, cached: 0, written: 1000 }, false)));
    }
}
