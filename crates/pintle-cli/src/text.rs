//! Texts, times and numbers as lines of a terminal show them.

use std::time::Duration;

use pintle_domain::hook::{Family, Hook};

use crate::clean::{clean, line};
use crate::table::{glued, padded};

/// Longest piece of a text that a line shows, in characters: the rest of a wide terminal after the columns.
const MAX_SHOWN: usize = 100;

/// A number of things.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// How many jobs of observers wait, in a line.
pub(crate) fn jobs_waiting(jobs: u64) -> String {
    let what = if jobs == 1 { "job of an observer waits" } else { "jobs of observers wait" };
    format!("{jobs} {what} to be sent; every run, and `pintle chat`, sends what is due")
}

/// The end of `id` that stands for it in hints: of a UUID its last group, in which no two agree. Its beginning would be
/// the time, which all that was made together has in common.
pub(crate) fn short_id(id: &str) -> String {
    let start = id.char_indices().rev().nth(SHORT_ID - 1).map_or(0, |(start, _)| start);
    clean(id[start..].trim_start_matches('-'))
}

/// The characters of an id that stand for it, with the hyphen of a UUID.
const SHORT_ID: usize = 13;

/// What to do about a hook that may answer before others are asked, and never does.
pub(crate) const SHADOW_CURE: &str = "`respond = []` in the entry of a hook says that it never answers";

/// That not all that a command runs is watched, where some of its text, `unread`, cannot be read.
pub(crate) fn not_watched(unread: &[String]) -> Option<String> {
    let named = clean(&unread.join(", "));
    (!unread.is_empty()).then(|| format!("what it runs in turn is not watched for changes, because of {named}"))
}

/// The most names that a line shows of many.
const MAX_NAMES: usize = 5;

/// The names of `hooks`, or the first of them and how many more there are.
pub(crate) fn few_names(hooks: &[&Hook]) -> String {
    let names: Vec<String> = hooks.iter().take(MAX_NAMES).map(|hook| clean(hook.name.as_str())).collect();
    match hooks.len() - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// A text on one line, cut where a line gets too long, with nothing in it that moves a terminal or turns the direction
/// of reading around.
pub fn clip(text: &str) -> String {
    cut(text, MAX_SHOWN)
}

fn cut(text: &str, chars: usize) -> String {
    let end = text.char_indices().nth(chars).map_or(text.len(), |(end, _)| end);
    let mut shown = line(&text[..end]);
    if text.chars().nth(chars).is_some() {
        shown.push('…');
    }
    shown
}

/// Longest piece of what a hook or a service said that a line shows, in characters: hints are shorter, and a terminal
/// has room for no more.
const MAX_SAID: usize = 1000;

/// What somebody said on one line, whole: it may be a hint. Only what no screen has room for is cut.
pub(crate) fn whole(text: &str) -> String {
    cut(text, MAX_SAID)
}

/// The word for the family of a hook, as people read it: agent is what the JSON of a rule says.
pub(crate) fn family_said(word: &str) -> &str {
    if word == Family::Rule.word() { "rule" } else { word }
}

/// The columns of a time in a list, as wide as the longest that anybody sees: it moves nothing beside it.
pub(crate) const TIME_COLUMNS: usize = 8;

/// A [time] in a list, always as wide.
pub(crate) fn time_column(took: Duration) -> String {
    time_column_of(took, TIME_COLUMNS)
}

/// The same, as wide as `columns` where that is enough.
pub(crate) fn time_column_of(took: Duration, columns: usize) -> String {
    glued(&format!("{:>columns$}", time(took)))
}

/// The same of a number of milliseconds, as records have it.
pub(crate) fn millis_column(millis: f64) -> String {
    time_column(Duration::try_from_secs_f64((millis / 1000.0).max(0.0)).unwrap_or(Duration::MAX))
}

/// The same of milliseconds that are kept as a whole number, so that none are some.
pub(crate) fn whole_millis_column(millis: f64) -> String {
    if millis < 1.0 { glued(&format!("{:>TIME_COLUMNS$}", "<1 ms")) } else { millis_column(millis) }
}

/// How long a hook waited for a place to run, in milliseconds, as it is shown beside its own time.
pub(crate) fn waited(millis: f64) -> String {
    format!("waited {} for a slot", millis_said(millis))
}

/// A [time] in a sentence: as it is, and it moves no break of a line.
pub(crate) fn time_said(took: Duration) -> String {
    padded(&time(took), TIME_COLUMNS)
}

/// The same of a number of milliseconds, as records have it.
pub(crate) fn millis_said(millis: f64) -> String {
    time_said(Duration::try_from_secs_f64((millis / 1000.0).max(0.0)).unwrap_or(Duration::MAX))
}

/// A time in the unit that people read it in.
pub fn time(took: Duration) -> String {
    let us = took.as_micros();
    match us {
        0..1000 => format!("{us} µs"),
        1000..10_000 => format!("{:.1} ms", took.as_secs_f64() * 1e3),
        10_000..1_000_000 => format!("{} ms", took.as_millis()),
        _ => format!("{:.1} s", took.as_secs_f64()),
    }
}
