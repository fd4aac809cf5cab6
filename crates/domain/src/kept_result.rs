//! Long results of tools: the model gets the beginning, the rest stays with the session and is read page by page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tool::ToolOutput;

/// The most of one result that a model reads, in bytes: some 16,000 tokens, which small models take, too.
pub const MAX_RESULT_BYTES: usize = 64 * 1024;

/// The most of one result that hooks see and a session keeps, in bytes: written as JSON it fits many times into the
/// longest line of a process hook.
pub const MAX_HOOK_RESULT_BYTES: usize = 4 * 1024 * 1024;

/// The most that a session keeps of long results, in bytes; the oldest go first. All of it is held in memory.
pub const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;

/// How a reference to a kept result begins.
pub const SCHEME: &str = "result://";

/// The room for the note at the end of what is shown, in bytes.
const NOTE_BYTES: usize = 256;

/// The most that stands behind the note of a long result, in bytes: what the host adds to it, such as paths of files.
const TAIL_BYTES: usize = 4 * 1024;

/// A result that was too long for the model, as the hooks left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptResult {
    /// Its number in the session.
    pub id: u64,
    /// The whole text.
    pub text: String,
}

/// A place in a kept result: `result://ID`, or `result://ID#BYTE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultPlace {
    /// The number of the result.
    pub id: u64,
    /// The byte at which to begin.
    pub at: usize,
}

impl ResultPlace {
    /// The place that `path` names, if it is in the form of a reference.
    ///
    /// # Errors
    /// It begins like a reference and is none: what was expected, in words for a model.
    pub fn of(path: &str) -> Option<Result<Self, String>> {
        let rest = path.strip_prefix(SCHEME)?;
        let (id, at) = rest.split_once('#').unwrap_or((rest, "0"));
        let place = id.parse().ok().zip(at.parse().ok()).map(|(id, at)| Self { id, at });
        Some(place.ok_or_else(|| format!("`{path}` is not a result: expected `{SCHEME}ID` or `{SCHEME}ID#BYTE`")))
    }
}

/// The part of a result that is asked for, in lines from its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineRange {
    /// The first line, from 1.
    pub offset: Option<u64>,
    /// How many lines.
    pub limit: Option<u64>,
}

/// The long results of one session.
#[derive(Clone, Debug, Default)]
pub struct KeptResults {
    texts: BTreeMap<u64, String>,
    bytes: usize,
    last: u64,
}

impl KeptResults {
    /// The number of the next one.
    pub fn next_id(&self) -> u64 {
        self.last + 1
    }

    /// Keeps one more; the oldest give way where that is too much.
    pub fn keep(&mut self, kept: KeptResult) {
        self.last = self.last.max(kept.id);
        self.bytes += kept.text.len();
        if let Some(before) = self.texts.insert(kept.id, kept.text) {
            self.bytes -= before.len();
        }
        while self.bytes > MAX_KEPT_BYTES
            && let Some((_, oldest)) = self.texts.pop_first()
        {
            self.bytes -= oldest.len();
        }
    }

    /// The page of a result that begins at `place`, with a word on how to go on.
    ///
    /// # Errors
    /// There is nothing there, in words for a model.
    pub fn page(&self, place: ResultPlace, lines: LineRange) -> Result<String, String> {
        let reference = format!("{SCHEME}{}", place.id);
        let Some(text) = self.texts.get(&place.id) else {
            return Err(format!("`{reference}` is not a result of this session, or it had to give way to newer ones"));
        };
        let from = text.floor_char_boundary(place.at);
        let skipped = match lines.offset.unwrap_or(1).saturating_sub(1) {
            0 => Some(0),
            lines => nth_line_end(&text[from..], lines),
        };
        let begin = skipped.map(|skipped| from + skipped).filter(|begin| *begin < text.len() || *begin == 0);
        let Some(begin) = begin else {
            return Err(format!("`{reference}` ends before that: it has {} bytes", text.len()));
        };
        let wanted = lines.limit.and_then(|limit| nth_line_end(&text[begin..], limit));
        let wanted = wanted.map_or(&text[begin..], |end| &text[begin..begin + end]);
        let end = begin + whole_lines(wanted, MAX_RESULT_BYTES - NOTE_BYTES);
        let mut page = text[begin..end].to_owned();
        if end < text.len() {
            let note = format!("[bytes {begin} to {end} of {}; go on with path {reference}#{end}]", text.len());
            add_line(&mut page, &note);
        }
        Ok(page)
    }
}

/// `text` as a model reads it, of which `id` is kept, if any is: at most `max` bytes, with a word on where the rest is.
pub fn beginning(text: &str, max: usize, id: Option<u64>) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = whole_lines(text, max.saturating_sub(NOTE_BYTES));
    let mut shown = text[..end].to_owned();
    let rest = match id {
        Some(id) => format!("`read_file` with path {SCHEME}{id}#{end} goes on"),
        None => "the rest is not shown".to_owned(),
    };
    add_line(&mut shown, &format!("[cut at byte {end} of {}; {rest}]", text.len()));
    shown
}

impl ToolOutput {
    /// The result as hooks may get it: longer texts than they take are cut, and say so. What no hook saw reaches nobody.
    #[must_use]
    pub fn for_hooks(mut self) -> Self {
        for text in [&mut self.for_llm, &mut self.for_user] {
            if text.len() > MAX_HOOK_RESULT_BYTES {
                *text = beginning(text, MAX_HOOK_RESULT_BYTES, None);
            }
        }
        self
    }

    /// Cuts the text to what a model reads of one result. `said` is the length of what the tool and the hooks said; what
    /// stands behind that was added by the host, and stays. `keep` is handed the whole of what was said, and gives the
    /// number under which it is kept, if it is.
    #[must_use]
    pub fn bounded(mut self, said: usize, keep: impl FnOnce(&str) -> Option<u64>) -> Self {
        if self.for_llm.len() <= MAX_RESULT_BYTES {
            return self;
        }
        let added = if self.for_llm.is_char_boundary(said) { self.for_llm.split_off(said) } else { String::new() };
        let added = beginning(&added, TAIL_BYTES, None);
        self.for_llm.truncate(self.for_llm.floor_char_boundary(MAX_HOOK_RESULT_BYTES));
        let id = keep(&self.for_llm);
        self.for_llm = beginning(&self.for_llm, MAX_RESULT_BYTES - added.len(), id) + &added;
        self
    }
}

/// How much of `text` fits in `max` bytes: whole lines, unless that leaves out more than half of it.
fn whole_lines(text: &str, max: usize) -> usize {
    if text.len() <= max {
        return text.len();
    }
    let end = text.floor_char_boundary(max);
    text[..end].rfind('\n').map(|at| at + 1).filter(|at| *at > end / 2).unwrap_or(end)
}

/// Where the line number `lines` of `text` ends; nothing if there are fewer that end.
fn nth_line_end(text: &str, lines: u64) -> Option<usize> {
    let nth = usize::try_from(lines.checked_sub(1)?).ok()?;
    text.match_indices('\n').nth(nth).map(|(at, _)| at + 1)
}

fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(texts: &[&str]) -> KeptResults {
        let mut results = KeptResults::default();
        for text in texts {
            results.keep(KeptResult { id: results.next_id(), text: (*text).to_owned() });
        }
        results
    }

    /// What a model finds that pages as the notes say, until there is no note.
    fn paged(results: &KeptResults, first: &str) -> String {
        let (mut path, mut all) = (first.to_owned(), String::new());
        loop {
            let page = results.page(ResultPlace::of(&path).unwrap().unwrap(), LineRange::default()).unwrap();
            assert!(page.len() <= MAX_RESULT_BYTES, "{}", page.len());
            let Some((text, note)) = page.rsplit_once("[bytes ") else { return all + &page };
            let next = note.rsplit_once(' ').unwrap().1.trim_end_matches(']').to_owned();
            let end: usize = next.rsplit_once('#').unwrap().1.parse().unwrap();
            all.push_str(text);
            all.truncate(end);
            path = next;
        }
    }

    #[test]
    fn every_byte_of_a_long_result_can_be_read() {
        let lines: String = (0..40_000).map(|n| format!("line {n}\n")).collect();
        let one_line = "é€".repeat(60_000);
        for text in [lines.as_str(), one_line.as_str(), "short", ""] {
            assert!(paged(&kept(&[text]), "result://1") == text, "{} bytes", text.len());
        }
    }

    #[test]
    fn lines_are_counted_from_the_place_that_is_named() {
        let results = kept(&["x", "a\nb\nc\nd"]);
        let page = |path: &str, offset, limit| {
            let place = ResultPlace::of(path).unwrap()?;
            results.page(place, LineRange { offset, limit })
        };
        assert_eq!(
            page("result://2", Some(2), Some(2)).unwrap(),
            "b\nc\n[bytes 2 to 6 of 7; go on with path result://2#6]"
        );
        assert_eq!(page("result://2#6", None, None).unwrap(), "d");
        assert_eq!(page("result://2", Some(9), None).unwrap_err(), "`result://2` ends before that: it has 7 bytes");
        assert_eq!(page("result://2#7", None, None).unwrap_err(), "`result://2` ends before that: it has 7 bytes");
        let unknown = "`result://3` is not a result of this session, or it had to give way to newer ones";
        assert_eq!(page("result://3", None, None).unwrap_err(), unknown);
        let malformed = "`result://x#y` is not a result: expected `result://ID` or `result://ID#BYTE`";
        assert_eq!(page("result://x#y", None, None).unwrap_err(), malformed);
        assert_eq!(ResultPlace::of("results.txt"), None);
    }

    #[test]
    fn the_oldest_give_way() {
        let half = "x".repeat(MAX_KEPT_BYTES / 2 + 1);
        let results = kept(&[&half, "small", &half]);
        let has = |id| results.page(ResultPlace { id, at: 0 }, LineRange::default()).is_ok();
        assert_eq!([1, 2, 3].map(has), [false, true, true]);
        assert_eq!(results.next_id(), 4);
    }

    #[test]
    fn a_bounded_result_keeps_what_the_host_added() {
        let said = "y".repeat(MAX_RESULT_BYTES + 1);
        let output = ToolOutput::ok(format!("{said}\n\nLocal artifact paths: /a"));
        let mut whole = String::new();
        let output = output.bounded(said.len(), |text| {
            text.clone_into(&mut whole);
            Some(7)
        });
        assert_eq!(whole, said);
        assert!(output.for_llm.len() <= MAX_RESULT_BYTES);
        let end = output.for_llm.trim_start_matches('y');
        assert_eq!(
            end,
            "\n[cut at byte 65254 of 65537; `read_file` with path result://7#65254 goes on]\n\nLocal artifact paths: /a"
        );
        let short = ToolOutput::ok("z".repeat(MAX_RESULT_BYTES));
        assert_eq!(short.clone().bounded(0, |_| None), short);
        let nowhere = ToolOutput::ok(&said).bounded(said.len(), |_| None).for_llm;
        assert!(nowhere.ends_with("of 65537; the rest is not shown]"), "{}", &nowhere[nowhere.len() - 99..]);
    }

    #[test]
    fn hooks_get_no_more_than_they_take() {
        let output = ToolOutput::ok("h".repeat(MAX_HOOK_RESULT_BYTES + 1)).for_hooks();
        assert!(output.for_llm.len() <= MAX_HOOK_RESULT_BYTES && output.for_llm.ends_with("the rest is not shown]"));
    }
}
